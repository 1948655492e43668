// SPDX-License-Identifier: GPL-2.0

//! The rules of `rooms.toml`, and the checks for violations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use serde::Deserialize;

use crate::graph::Import;
use crate::module::{CratePath, Module};

/// The number of files that may be in circles, in all cores together.
const MOST_IN_CIRCLES: usize = 12;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Room {
    name: String,
    imports: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Core {
    files: BTreeSet<String>,
    reason: String,
}

/// The contents of `rooms.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    room: Vec<Room>,
    #[serde(default)]
    core: Vec<Core>,
}

impl Rules {
    /// Reads the rules.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no TOML of this form, or names a room that it does not define.
    pub(crate) fn read(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let rules: Self = toml::from_str(&std::fs::read_to_string(path)?)?;
        for room in &rules.room {
            for import in &room.imports {
                let is_room =
                    |r: &Room| r.name == *import || r.name.starts_with(&format!("{import}/"));
                if !rules.room.iter().any(is_room) {
                    return Err(format!("{}: there is no room {import}", room.name).into());
                }
            }
        }
        Ok(rules)
    }

    /// The room of a module. If several match, the one with the longest name.
    fn room_of(&self, module: &[String]) -> Option<&Room> {
        self.room
            .iter()
            .filter(|room| {
                let name: Vec<&str> = room.name.split('/').collect();
                module.len() >= name.len() && name.iter().zip(module).all(|(a, b)| a == b)
            })
            .max_by_key(|room| room.name.len())
    }

    /// Reports imports that the rules do not allow. In `imports`, a name that has only wings
    /// (`verbs`) allows its re-exports and all its wings.
    pub(crate) fn forbidden(&self, imports: &BTreeSet<Import>) -> Vec<String> {
        let mut found = Vec::new();
        for import in imports.iter().filter(|import| !import.hidden) {
            let Some(from) = self.room_of(&import.from) else {
                continue;
            };
            let to = self.room_of(&import.to);
            let to = to.map_or_else(|| import.to.join("/"), |room| room.name.clone());
            // An empty path is the crate root, for `THIS_MODULE`.
            let allowed = to == from.name
                || to.is_empty()
                || from.imports.iter().any(|on| {
                    *on == to || (!self.is_defined(on) && to.starts_with(&format!("{on}/")))
                });
            if !allowed {
                found.push(format!(
                    "{}: {} may not import {to} ({})",
                    import.place, from.name, import.item
                ));
            }
        }
        found
    }

    fn is_defined(&self, name: &str) -> bool {
        self.room.iter().any(|room| room.name == name)
    }

    /// Reports circles of files that no core allows, files of cores that are in no circle, cores
    /// without a reason, and more than [`MOST_IN_CIRCLES`] files in circles.
    pub(crate) fn circles(
        &self,
        imports: &BTreeSet<Import>,
        modules: &BTreeMap<CratePath, Module>,
    ) -> Vec<String> {
        let names: Vec<&CratePath> = modules.keys().collect();
        let index = |path: &CratePath| names.binary_search(&path).ok();
        let mut graph = DiGraphMap::<usize, ()>::new();
        for import in imports {
            if let (Some(from), Some(to)) = (index(&import.from), index(&import.to)) {
                graph.add_edge(from, to, ());
            }
        }
        let mut found = Vec::new();
        let mut met = BTreeSet::new();
        let mut in_circles = 0;
        for circle in tarjan_scc(&graph).iter().filter(|scc| scc.len() > 1) {
            let file = |i: &usize| modules[names[*i]].file.clone();
            let files: BTreeSet<String> = circle.iter().map(file).collect();
            in_circles += files.len();
            if let Some(core) = self
                .core
                .iter()
                .position(|core| files.is_subset(&core.files))
            {
                met.extend(files.into_iter().map(|f| (core, f)));
                continue;
            }
            found.push(format!("{} files import each other:", files.len()));
            for import in imports {
                let at = |p: &CratePath| index(p).is_some_and(|i| circle.contains(&i));
                if at(&import.from) && at(&import.to) {
                    let how = if import.hidden { "calls" } else { "imports" };
                    let to = &modules[&import.to].file;
                    found.push(format!("  {}: {how} {} of {to}", import.place, import.item));
                }
            }
        }
        for (i, core) in self.core.iter().enumerate() {
            if core.reason.trim().is_empty() {
                found.push(format!("a [[core]] has no reason: {:?}", core.files));
            }
            for file in &core.files {
                if !met.contains(&(i, file.clone())) {
                    found.push(format!("{file}: is in a [[core]], but in no circle"));
                }
            }
        }
        if in_circles > MOST_IN_CIRCLES {
            found.push(format!(
                "{in_circles} files are in circles, {MOST_IN_CIRCLES} allowed"
            ));
        }
        found
    }
}
