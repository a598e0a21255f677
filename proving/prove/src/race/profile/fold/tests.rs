//! Stacks by example.

use super::{Frame, fold};

const SCRIPT: &str = "gate-0 \n\tffffffff81003c5a do_syscall_64\n\t    7f10aa52 [unknown]\n\t    5610ab serve::h0123456789abcdef\n\n\
gate-1 \n\tffffffff81003c5a do_syscall_64\n\t    7f10aa52 [unknown]\n\t    5610ab serve::h0123456789abcdef\n\n\
other \n\tffffffffffffffff [unknown]\n\t    5610ac parse<T as U>::h\n";

#[test]
fn equal_stacks_are_counted_from_the_outside_in() {
    let stacks = fold(SCRIPT);
    let frame = |name: &str, kernel| Frame {
        name: name.into(),
        kernel,
    };
    let first = vec![
        frame("gate-*", false),
        frame("serve", false),
        frame("unknown", false),
        frame("do_syscall_64", true),
    ];
    let second = vec![
        frame("other", false),
        frame("parse<T as U>::h", false),
        frame("unknown", false),
    ];
    assert_eq!(
        stacks.into_iter().collect::<Vec<_>>(),
        [(first, 2), (second, 1)]
    );
}

#[test]
fn nothing_and_nonsense_are_no_stacks() {
    assert!(fold("").is_empty() && fold("\n\n  lonely frame\n\n").is_empty());
}
