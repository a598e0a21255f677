//! Appends pieces that belong together: room is made once for all.
//!
//! Not here: what the pieces are (`write`).

/// Appends the pieces in order.
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "callgrind: a field line takes 90 instructions, with four appends 125"
)]
pub(super) fn append<const N: usize>(out: &mut Vec<u8>, pieces: [&[u8]; N]) {
    let total = pieces
        .iter()
        .fold(0_usize, |sum, piece| sum.saturating_add(piece.len()));
    out.reserve(total);
    let mut room = out.spare_capacity_mut();
    for piece in pieces {
        let Some((to, rest)) = room.split_at_mut_checked(piece.len()) else {
            return;
        };
        to.write_copy_of_slice(piece);
        room = rest;
    }
    let len = out.len() + total;
    // SAFETY: the pieces, `total` bytes together, were just written one after another from the end on.
    unsafe { out.set_len(len) };
}

#[cfg(test)]
mod tests;
