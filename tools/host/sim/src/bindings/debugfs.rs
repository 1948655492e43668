// SPDX-License-Identifier: GPL-2.0

//! Files under debugfs, as in `fs/debugfs`: their removal waits for the tasks that read them.

use core::cell::RefCell;
use core::ffi::{c_void, CStr};
use std::collections::BTreeMap;

use kernel::error::{code, from_err_ptr, Error};
use kernel::ffi::c_char;
use kernel::{lockdep, sched};

use super::*;

/// The locks that a reader may wait for. No RPC takes one of them.
const LOCKS: [&str; 2] = ["PARTIALS", "ENDED"];

/// The content of a file, and its operations, by address.
type Shown = (usize, usize);

/// A file or a directory.
struct Entry {
    name: String,
    /// The directory; 0 for the root.
    parent: usize,
    shown: Option<Shown>,
    readers: usize,
    removed: bool,
}

thread_local! {
    /// By the address of the `dentry`, to which nothing is mapped.
    static ENTRIES: RefCell<BTreeMap<usize, Entry>> = const { RefCell::new(BTreeMap::new()) };
}

fn entries<R>(f: impl FnOnce(&mut BTreeMap<usize, Entry>) -> R) -> R {
    ENTRIES.with_borrow_mut(f)
}

/// The key that waits for the last reader of a file.
fn key(entry: usize) -> usize {
    (1 << 45) ^ entry
}

/// The number of files and directories.
pub(crate) fn debugfs_entries() -> usize {
    entries(|all| all.len())
}

unsafe fn create(name: *const c_char, parent: *mut dentry, shown: Option<Shown>) -> *mut dentry {
    lockdep::might_sleep("the creation of a file");
    if from_err_ptr(parent).is_err() {
        return parent;
    }
    if kernel::memory::fails(kernel::alloc::flags::GFP_KERNEL, "a dentry") {
        return code::ENOMEM.to_ptr();
    }
    let name = unsafe { CStr::from_ptr(name.cast()) }.to_string_lossy();
    let (name, parent) = (name.into_owned(), parent.addr());
    let created = entries(|all| {
        if all
            .values()
            .any(|one| (one.parent, &one.name) == (parent, &name))
        {
            return Err(format!("a directory has two entries {name}"));
        }
        let entry = all.last_key_value().map_or(4096, |(last, _)| last + 64);
        let entry_of = Entry {
            name,
            parent,
            shown,
            readers: 0,
            removed: false,
        };
        all.insert(entry, entry_of);
        Ok(entry)
    });
    match created {
        Ok(entry) => ptr(entry),
        Err(why) => sched::fail(why),
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_debugfs_create_dir(
    name: *const c_char,
    parent: *mut dentry,
) -> *mut dentry {
    unsafe { create(name, parent, None) }
}

pub(crate) unsafe extern "C" fn rpcrdma_debugfs_create_file(
    name: *const c_char,
    _mode: umode_t,
    parent: *mut dentry,
    data: *mut c_void,
    fops: *const debugfs_short_fops,
) -> *mut dentry {
    let shown = (data.expose_provenance(), fops.expose_provenance());
    unsafe { create(name, parent, Some(shown)) }
}

/// `debugfs_remove()`: removes an entry, and what is in it.
pub(crate) unsafe extern "C" fn rpcrdma_debugfs_remove(dentry: *mut dentry) {
    if dentry.is_null() || from_err_ptr(dentry).is_err() {
        return;
    }
    lockdep::might_sleep("debugfs_remove()");
    let first = dentry.addr();
    if !entries(|all| all.contains_key(&first)) {
        sched::fail("a file is removed that is not there");
    }
    let mut going = vec![first];
    while let Some(&entry) = going.last() {
        let below = entries(|all| {
            all.get_mut(&entry).expect("an entry").removed = true;
            let inside = all.iter().find(|(_, one)| one.parent == entry);
            inside.map(|(below, _)| *below)
        });
        if let Some(below) = below {
            going.push(below);
            continue;
        }
        sched::preempt();
        while entries(|all| all[&entry].readers) > 0 {
            sched::wait_on(key(entry));
        }
        entries(|all| all.remove(&entry));
        going.pop();
    }
}

/// The names of the files in a directory of the module.
pub(crate) fn files_in(dir: &str) -> Vec<String> {
    entries(|all| {
        let found = all
            .iter()
            .find(|(_, one)| one.name == dir && one.parent != 0);
        let Some((parent, _)) = found else {
            return Vec::new();
        };
        let inside = all.values().filter(|one| one.parent == *parent);
        inside.map(|one| one.name.clone()).collect()
    })
}

/// A file that is open. It may be removed meanwhile.
pub(crate) struct OpenFile {
    raw: Box<file>,
    entry: usize,
    at: loff_t,
}

impl OpenFile {
    /// Opens a file, if it is there.
    pub(crate) fn new(dir: &str, name: &str) -> Option<Self> {
        entries(|all| {
            let is = |one: &Entry| {
                let parent = all.get(&one.parent);
                one.name == name && !one.removed && parent.is_some_and(|one| one.name == dir)
            };
            let (entry, one) = all.iter().find(|(_, one)| is(one))?;
            let (data, _) = one.shown?;
            Some(Self {
                raw: Box::new(file {
                    private_data: ptr(data),
                }),
                entry: *entry,
                at: 0,
            })
        })
    }

    /// Reads up to so many bytes; none at the end.
    ///
    /// # Errors
    ///
    /// `EIO` if the file was removed, or the error of the module.
    pub(crate) fn read(&mut self, most: usize) -> Result<Vec<u8>, Error> {
        // debugfs_file_get()
        let shown = entries(|all| {
            let one = all.get_mut(&self.entry).filter(|one| !one.removed)?;
            one.readers += 1;
            one.shown
        });
        let (data, fops) = shown.ok_or(code::EIO)?;
        sched::preempt();
        if kernel::memory::allocation_of(data).is_none() {
            sched::fail("a file shows memory that is freed");
        }
        let mut bytes = vec![0_u8; most];
        let (raw, at) = (&raw mut *self.raw, &raw mut self.at);
        let read = unsafe { (*ptr::<debugfs_short_fops>(fops)).read }.expect("an operation");
        let count = sched::module_code(|| {
            sched::only_locks(&LOCKS, || unsafe {
                read(raw, bytes.as_mut_ptr(), most, at)
            })
        });
        // debugfs_file_put()
        sched::preempt();
        entries(|all| all.get_mut(&self.entry).expect("an open file").readers -= 1);
        sched::wake(key(self.entry));
        if count < 0 {
            return Err(Error::from_errno(count as i32));
        }
        bytes.truncate(count as usize);
        Ok(bytes)
    }
}

pub(crate) unsafe extern "C" fn simple_read_from_buffer(
    to: *mut c_void,
    count: usize,
    ppos: *mut loff_t,
    from: *const c_void,
    available: usize,
) -> isize {
    lockdep::might_sleep("copy_to_user()");
    unsafe {
        let at = (*ppos as usize).min(available);
        let count = count.min(available - at);
        to.cast::<u8>().copy_from(from.cast::<u8>().add(at), count);
        *ppos += count as loff_t;
        count as isize
    }
}

/// Forgets everything, after a run that has failed.
pub(crate) fn forget_debugfs() {
    entries(BTreeMap::clear);
}
