//! What the processor at hand can do, and the same code compiled for it.
//!
//! Most of the work here is on masks of 64 bits and on short lists of numbers, for which processors have better instructions
//! since 2013. What is compiled twice is all of a count: a [`Work`], generic in its [`Level`].
//! Invariant: a level above [`Portable`] exists only where the processor has its instructions; all levels give the same.
//! Not here: what is done (`pieced`), the masks themselves (`window`).

use super::bpe;
use super::pairs::Pairs;
use super::window::{BYTES, Masks};

/// Instructions that may be used.
pub(super) trait Level: Copy {
    fn masks(self, bytes: &[u8; BYTES]) -> Masks;

    /// As [`bpe::count`].
    fn merged(self, pairs: &Pairs<'_>, piece: &[u8]) -> u64;
}

/// What is done at the best level that there is. `run` has to be `#[inline(always)]`, and all that is hot below it: only
/// then it is compiled for the level.
pub(super) trait Work {
    type Output;

    fn run<L: Level>(self, level: L) -> Self::Output;
}

/// Those that every processor has for which this is compiled.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Level for Portable {
    #[inline(always)]
    fn masks(self, bytes: &[u8; BYTES]) -> Masks {
        Masks::of(bytes)
    }

    #[inline(never)]
    fn merged(self, pairs: &Pairs<'_>, piece: &[u8]) -> u64 {
        bpe::count(pairs, piece)
    }
}

/// The best level of the processor at hand.
#[derive(Clone, Copy)]
pub(super) struct Processor {
    #[cfg(target_arch = "x86_64")]
    avx2: Option<avx2::Avx2>,
}

impl Processor {
    pub(super) fn at_hand() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            avx2: avx2::Avx2::at_hand(),
        }
    }

    /// One of which nothing is known.
    #[cfg(test)]
    pub(super) const fn any() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            avx2: None,
        }
    }

    #[inline]
    pub(super) fn run<W: Work>(self, work: W) -> W::Output {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.run(work);
        }
        work.run(Portable)
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that a processor may not have")]
mod avx2 {
    use super::super::window;
    use super::{BYTES, Level, Masks, Pairs, Work, bpe};

    /// A processor with AVX2, BMI1, BMI2 and LZCNT. There is none but where [`Avx2::at_hand`] found these; for all `unsafe`
    /// below, this is why it is sound.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(());

    impl Avx2 {
        pub(super) fn at_hand() -> Option<Self> {
            let has_all = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt");
            has_all.then_some(Self(()))
        }

        #[inline]
        pub(super) fn run<W: Work>(self, work: W) -> W::Output {
            // SAFETY: all that is asked of the caller is a processor with these instructions, and `self` is one.
            unsafe { run(self, work) }
        }
    }

    impl Level for Avx2 {
        #[inline(always)]
        fn masks(self, bytes: &[u8; BYTES]) -> Masks {
            // SAFETY: as above.
            unsafe { window::avx2::masks(bytes) }
        }

        #[inline(always)]
        fn merged(self, pairs: &Pairs<'_>, piece: &[u8]) -> u64 {
            // SAFETY: as above.
            unsafe { merged(pairs, piece) }
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn run<W: Work>(level: Avx2, work: W) -> W::Output {
        work.run(level)
    }

    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn merged(pairs: &Pairs<'_>, piece: &[u8]) -> u64 {
        bpe::count(pairs, piece)
    }
}
