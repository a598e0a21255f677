//! Memory that will be read soon is asked for early.
//!
//! Of text that was never seen, half of the time of a count was waiting for what is known of its pieces, one after the
//! other; asked for together they come together.
//! Not here: what is read (`known`).

/// Brings the line of `value` into the processor's cache, where it can be asked for that.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instruction is asked for by name")]
#[inline]
pub(super) fn nearer<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction reads nothing into the program and faults at no address; this one is a reference's.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}

/// Brings the line of `value` into the processor's cache, where it can be asked for that.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) const fn nearer<T>(_value: &T) {}
