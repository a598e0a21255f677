//! What stack rules take: parsers and interpreters go as deep as what they are given.
//!
//! Not here: the bounds that keep it finite (`cel`, `rego`).

/// Stack, in bytes, of a thread that reads rules or decides by them: twice what the deepest ones take in a build that
/// optimises nothing.
pub const STACK_BYTES: usize = 32 << 20;

/// Runs a test on half of it.
#[cfg(test)]
pub(crate) fn on_half(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES / 2);
    let ended = thread.spawn(work).expect("a thread").join();
    ended.expect("no overflow, no panic");
}
