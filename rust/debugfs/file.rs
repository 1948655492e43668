// SPDX-License-Identifier: GPL-2.0

//! A file, whose text is composed when it is read.
//!
//! `kernel::debugfs` does not fit a module. debugfs calls the `release` operation of an open file
//! when it is closed, even if the file was removed since. The kernel crate's operations are in the
//! module that uses them and do not have it as their `owner`, so a file that stays open while the
//! module is unloaded is closed through freed memory. The operations used here
//! (`debugfs_short_fops`) are used for a file that is not removed, and at no other time.
//!
//! They lack `open`, so that the text cannot be kept with the open file. [`Partials`] keeps it for
//! a reader whose buffer is too short for the whole text.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h)

use core::{
    ffi::c_void,
    fmt::{
        Display,
        Write, //
    },
    ptr, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::{
            Full,
            Relaxed, //
        },
        global_lock, //
    }, //
};

use crate::{
    bindings,
    lib::sync::Atomic, //
};

use super::{
    dir::Dir,
    lines::{
        Lines,
        Show, //
    }, //
};

/// The first size of a text.
const TEXT: usize = 4096;

/// The largest size of a text.
const MAX_TEXT: usize = 65_536;

/// How many readers may read a text in parts at a time.
const MAX_PARTIAL: usize = 32;

/// The number of the next file. 64 bits do not wrap around.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// Anyone who may search the directories of debugfs may read. Under lockdown, other files could not
/// be read.
const MODE: bindings::umode_t = 0o444;

/// A text whose reader had a shorter buffer.
struct Partial {
    /// The [`Content::id`] of the file.
    content: u64,
    /// The address of the `struct file`, which identifies the reader.
    reader: usize,
    text: KVec<u8>,
}

/// The texts that readers read in parts, of all files: debugfs does not tell that a reader has
/// closed its file, so that the text of such a reader stays until others replace it. A reader that
/// goes on after [`MAX_PARTIAL`] others have begun finds the end of the file.
struct Partials {
    entries: [Option<Partial>; MAX_PARTIAL],
    next: usize,
}

global_lock! {
    // SAFETY: `init` initializes it, before there is a file.
    unsafe(uninit) static PARTIALS: Mutex<Partials> = Partials::new();
}

/// Initializes what all files share, before there is a file.
///
/// # Safety
///
/// Called once.
pub(super) unsafe fn init() {
    // SAFETY: By this function's contract.
    unsafe { PARTIALS.init() };
}

impl Partials {
    const fn new() -> Self {
        Self {
            entries: [const { None }; MAX_PARTIAL],
            next: 0,
        }
    }

    /// The entries of texts of this content.
    fn of(&mut self, content: u64) -> impl Iterator<Item = &mut Option<Partial>> {
        let is_of = move |entry: &&mut Option<Partial>| {
            let partial = Option::as_ref(*entry);
            partial.is_some_and(|partial| partial.content == content)
        };
        self.entries.iter_mut().filter(is_of)
    }

    fn take(&mut self, content: u64, reader: usize) -> Option<KVec<u8>> {
        let is_of = |entry: &&mut Option<Partial>| {
            let partial = Option::as_ref(*entry);
            partial.is_some_and(|partial| partial.reader == reader)
        };
        let entry = self.of(content).find(is_of)?;
        entry.take().map(|partial| partial.text)
    }

    fn put(&mut self, partial: Partial) -> Option<Partial> {
        let free = self.entries.iter().position(Option::is_none);
        let index = free.unwrap_or(self.next);
        self.next = (index + 1) % MAX_PARTIAL;
        self.entries.get_mut(index)?.replace(partial)
    }
}

struct Content<T> {
    id: u64,
    shown: T,
}

impl<T: Show> Content<T> {
    /// The operations. They stay while the module is loaded.
    const FOPS: &'static bindings::debugfs_short_fops = &bindings::debugfs_short_fops {
        read: Some(read::<T>),
        write: None,
        llseek: None,
    };

    /// The whole text.
    fn compose(&self) -> Result<KVec<u8>> {
        let mut size = TEXT;
        while size <= MAX_TEXT {
            let mut lines = Lines::with_capacity(size)?;
            if self.shown.show(&mut lines).is_ok() {
                return Ok(lines.into_bytes());
            }
            size *= 2;
        }
        Err(E2BIG)
    }

    /// The text for a `reader` at this position, if there is more of it.
    fn text(&self, reader: usize, is_start: bool) -> Result<Option<KVec<u8>>> {
        let partial = PARTIALS.lock().take(self.id, reader);
        if is_start {
            self.compose().map(Some)
        } else {
            Ok(partial)
        }
    }

    /// Keeps the text for the next read of `reader`.
    fn keep(&self, reader: usize, text: KVec<u8>) {
        let partial = Partial {
            content: self.id,
            reader,
            text,
        };
        let replaced = PARTIALS.lock().put(partial);
        drop(replaced);
    }
}

impl<T> Drop for Content<T> {
    fn drop(&mut self) {
        for entry in PARTIALS.lock().of(self.id) {
            *entry = None;
        }
    }
}

/// Reads a file.
///
/// # Safety
///
/// debugfs calls this for an open file that [`File::create`] has created for a `T`. It is removed
/// after this returns. `to` is a buffer of user space of `count` bytes, and `ppos` is valid for
/// reads and writes.
unsafe extern "C" fn read<T: Show>(
    file: *mut bindings::file,
    to: *mut c_char,
    count: usize,
    ppos: *mut bindings::loff_t,
) -> isize {
    // SAFETY: By this function's contract the content stays. debugfs has stored the pointer to it.
    let content = unsafe { &*(*file).private_data.cast::<Content<T>>() };
    let reader = file.addr();
    // SAFETY: By this function's contract.
    let is_start = unsafe { *ppos } == 0;
    let text = match content.text(reader, is_start) {
        Ok(Some(text)) => text,
        Ok(None) => return 0,
        Err(error) => return error.to_errno() as isize,
    };
    // SAFETY: By this function's contract. The text has as many bytes.
    let (copied, end) = unsafe {
        let from: *const c_void = text.as_ptr().cast();
        let copied = bindings::simple_read_from_buffer(to.cast(), count, ppos, from, text.len());
        (copied, *ppos)
    };
    if copied > 0 && usize::try_from(end).is_ok_and(|end| end < text.len()) {
        content.keep(reader, text);
    }
    copied
}

/// A file. Dropping it removes the file.
pub(crate) trait Removable: Send + Sync {
    /// Removes the file, and waits until no task reads it. Sleeps.
    fn remove(&self);
}

/// A file that shows a `T`.
///
/// # Invariants
///
/// - I1: `dentry` is NULL, or what debugfs returned for a file with `content`, and is not removed.
///   [`File::create`] has its caller remove the file before the directory goes.
pub(crate) struct File<T: Show> {
    dentry: Atomic<*mut bindings::dentry>,
    content: KBox<Content<T>>,
}

impl<T: Show> File<T> {
    /// Creates the file `name` in `dir`. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// There is a [`Tree`](super::Tree), and the file is removed before the tree is dropped.
    pub(crate) unsafe fn create(
        dir: &Dir,
        name: impl Display,
        shown: T,
    ) -> Result<KBox<dyn Removable>> {
        let id = NEXT_ID.fetch_add(1, Relaxed);
        let content = KBox::new(Content { id, shown }, GFP_KERNEL)?;
        let mut text = Lines::with_capacity(32)?;
        write!(text, "{name}\0").map_err(|_| EINVAL)?;
        let name = text.into_bytes();
        // INVARIANT: I1: there is no file yet.
        let file = Self {
            dentry: Atomic::new(ptr::null_mut()),
            content,
        };
        let content: *const Content<T> = &*file.content;
        // SAFETY: The name is a string. The parent is an error or a directory, which stays by this
        // function's contract. The content stays until the file is removed, and the operations as
        // long as the module.
        let dentry = unsafe {
            bindings::rpcrdma_debugfs_create_file(
                name.as_ptr().cast(),
                MODE,
                dir.dentry(),
                content.cast_mut().cast(),
                Content::<T>::FOPS,
            )
        };
        // INVARIANT: I1: just created; the rest by this function's contract.
        file.dentry.store(dentry, Relaxed);
        let file: KBox<dyn Removable> = KBox::new(file, GFP_KERNEL)?;
        Ok(file)
    }
}

impl<T: Show> Removable for File<T> {
    fn remove(&self) {
        let dentry = self.dentry.xchg(ptr::null_mut(), Full);
        // SAFETY: By I1, which the exchange keeps. debugfs ignores NULL and errors.
        unsafe { bindings::rpcrdma_debugfs_remove(dentry) };
    }
}

impl<T: Show> Drop for File<T> {
    fn drop(&mut self) {
        self.remove();
    }
}
