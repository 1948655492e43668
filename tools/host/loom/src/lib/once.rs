// SPDX-License-Identifier: GPL-2.0

//! A model of `SetOnce`.

use loom::sync::Arc;
use loom::thread;

use super::set_once::SetOnce;
use crate::explore;
use crate::Payload;

/// Two threads set a value while a third reads it. Law: one of the two succeeds, the other value is
/// dropped, and the reader finds nothing or the value that was set, complete.
#[test]
fn value_is_set_once() {
    explore(|| {
        let value = SetOnce::new();
        assert!(value.as_ref().is_none());
        let value = Arc::new(value);
        let setters = [1, 2].map(|id| {
            let value = value.clone();
            thread::spawn(move || {
                let own = Payload::new(id);
                own.access();
                value.populate(own)
            })
        });
        if let Some(value) = SetOnce::as_ref(&value) {
            value.read();
        }
        let set = setters.map(|setter| setter.join().unwrap());
        assert!(set[0] != set[1], "one thread sets the value");
        let id = if set[0] { 1 } else { 2 };
        assert_eq!(SetOnce::as_ref(&value).map(|value| value.id), Some(id));
    });
}
