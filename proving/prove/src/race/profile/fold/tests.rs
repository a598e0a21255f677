//! Stacks by example.

use super::{Frame, Stacks, add_raw, fold};

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

#[test]
fn what_py_spy_saw_adds_up_over_processes() {
    let mut stacks = Stacks::new();
    add_raw(
        "main (app.py:1);call (proxy.py:20) 12\nmain (app.py:1) 3\n",
        &mut stacks,
    );
    add_raw(
        "main (app.py:1);call (proxy.py:20) 8\nno count\n\n",
        &mut stacks,
    );
    let name = |name: &str| Frame {
        name: name.into(),
        kernel: false,
    };
    let (main, call) = (name("main (app.py:1)"), name("call (proxy.py:20)"));
    let expected = Stacks::from([(vec![main.clone(), call], 20), (vec![main], 3)]);
    assert_eq!(stacks, expected);
}
