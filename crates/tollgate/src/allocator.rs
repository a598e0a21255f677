//! The allocator: mimalloc, asked in the way that costs it least.
//!
//! Not here: who allocates.

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc_aligned, mi_zalloc_aligned,
};

/// Every block of mimalloc's that is not smaller than this is aligned to it (`MI_MAX_ALIGN_SIZE`).
const ALIGNED: usize = 16;

/// mimalloc.
pub(crate) struct Mimalloc;

#[expect(
    unsafe_code,
    reason = "the wrapper crate asks for an alignment each time: 62 instructions a block in place of 25"
)]
// SAFETY: mimalloc is an allocator as `GlobalAlloc` demands: blocks are as large as asked for, do not overlap,
// and stay until freed; nothing here unwinds. Blocks asked for without an alignment are those whose size and
// alignment mimalloc aligns enough by itself: a block is aligned to the smaller of 16 and the largest power of
// two that divides its size class, and no class of a size from 16 on is aligned to less than 16.
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED && layout.size() >= ALIGNED {
            // SAFETY: any size may be asked for.
            return unsafe { mi_malloc(layout.size()).cast() };
        }
        // SAFETY: a layout's alignment is a power of two.
        unsafe { mi_malloc_aligned(layout.size(), layout.align()).cast() }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { mi_zalloc_aligned(layout.size(), layout.align()).cast() }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the block came from mimalloc, by the caller's promise.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above, both.
        unsafe { mi_realloc_aligned(block.cast(), size, layout.align()).cast() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_aligned_as_asked() {
        for size in (1..4096).chain((4096..1 << 20).step_by(4093)) {
            for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                #[expect(unsafe_code, reason = "an allocator is called with layouts")]
                // SAFETY: the size is not zero, and the block is freed as it was asked for.
                unsafe {
                    let block = Mimalloc.alloc(layout);
                    assert!(
                        !block.is_null() && block.addr().is_multiple_of(align),
                        "{layout:?}"
                    );
                    block.write_bytes(1, size);
                    Mimalloc.dealloc(block, layout);
                }
            }
        }
    }
}
