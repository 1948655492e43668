// SPDX-License-Identifier: GPL-2.0

//! The program itself, on captured files.

#![allow(missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

fn captured() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/guest.txt")
}

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfsrdma"));
    command
        .arg("--root")
        .arg(captured())
        .args(args)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn status_has_tables_without_colour_where_there_is_no_terminal() {
    let output = run(&["status"]);
    let text = stdout(&output);
    assert!(output.status.success());
    assert!(!text.contains('\x1b'), "{text}");
    for words in [
        "Module in Rust",
        "rxe0   1    ACTIVE",
        "/mnt",
        "192.168.20.1:20049",
        "1 of 1",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn status_is_json_on_request() {
    let output = run(&["status", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(all["module"]["language"], "rust");
    assert_eq!(all["mounts"][0]["target"], "/mnt");
    assert_eq!(all["mounts"][0]["xprts"][0]["connects"], 1);
    assert_eq!(all["nfsd"]["threads"], 8);
}

#[test]
fn errors_name_the_cause_and_the_next_step() {
    let output = run(&["explain", "/home"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text,
        "error: /home is not on a mount over RDMA\n    next: name one of: /mnt\n"
    );
}

#[test]
fn watch_stops_after_its_count() {
    let output = run(&["watch", "--json", "--interval", "0.1", "--count", "2"]);
    assert!(output.status.success());
    // The time in a capture stands still, so there are no rates.
    assert_eq!(stdout(&output), "");
}

/// Two samples, a second apart, with 10 READs of 1 MiB between them.
fn recording(dir: &Path) -> PathBuf {
    let sample = |time: u64, reads: u64| {
        format!(
            "{{\"time_ms\":{time},\
            \"mounts\":{{\"/mnt\":[{{\"name\":\"READ\",\"operations\":{reads},\
            \"bytes_received\":{},\"total_ms\":{}}}]}},\
            \"client\":{{\"2 192.0.2.1\":{{\"granted\":128,\"used\":3}}}}}}\n",
            reads << 20,
            reads * 4
        )
    };
    let path = dir.join("run.json");
    let text = [sample(1000, 0), sample(2000, 10), sample(3000, 30)].concat();
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_recorded_run_is_drawn() {
    let dir = TempDir::new().unwrap();
    let path = recording(dir.path());
    let output = run(&["graph", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let svg = fs::read_to_string(dir.path().join("run.svg")).unwrap();
    assert!(svg.starts_with("<svg"));
    for words in [
        "Throughput, MiB/s",
        "/mnt read",
        "/mnt READ",
        "granted",
        "polyline",
    ] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn a_run_is_recorded_to_a_new_file_only() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run.json");
    let record = [
        "record",
        path.to_str().unwrap(),
        "--interval",
        "0.1",
        "--count",
        "2",
    ];
    assert!(run(&record).status.success());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.contains("\"2 192.168.20.1:20049\":{\"granted\":128"),
        "{text}"
    );
    assert!(!run(&record).status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_capture_says_the_same_as_the_machine() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("copy.txt");
    let path = path.to_str().unwrap();
    assert!(run(&["capture", path]).status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfsrdma"));
    let copy = command
        .args(["--root", path, "status", "--json"])
        .output()
        .unwrap();
    assert_eq!(stdout(&copy), stdout(&run(&["status", "--json"])));
    assert!(
        stdout(&copy).contains("192.168.20.1:20049"),
        "{}",
        stdout(&copy)
    );
}
