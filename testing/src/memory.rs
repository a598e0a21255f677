//! An allocator that notes what each thread takes and gives back, so that a test of memory says the same on any machine and beside any
//! other test: `#[global_allocator] static NOTING: testing::Noting = testing::Noting;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static TAKEN: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which notes.
#[derive(Debug)]
pub struct Noting;

/// What this thread took since it began to be noted, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Held now, beyond what it held then.
    pub held: isize,
    /// The most that it held at once, beyond what it held then.
    pub most: usize,
    /// Asked for, whether it was given back or not.
    pub in_all: usize,
}

impl Memory {
    /// Runs this, and tells what it took. What it gives is held until it is dropped.
    pub fn of<T>(run: impl FnOnce() -> T) -> (Self, T) {
        let before = HELD.get();
        MOST.set(before);
        TAKEN.set(0);
        let made = run();
        let memory = Self {
            held: HELD.get() - before,
            most: (MOST.get() - before).unsigned_abs(),
            in_all: TAKEN.get().unsigned_abs(),
        };
        (memory, made)
    }
}

fn note(change: isize) {
    let held = HELD.get() + change;
    HELD.set(held);
    MOST.set(MOST.get().max(held));
    TAKEN.set(TAKEN.get() + change.max(0));
}

#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
// SAFETY: each call is the system allocator's own; what is noted lies in cells that allocate nothing.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}
