//! Byte pair encoding: a piece of text in, its tokens out.
//!
//! The symbols of a piece, at first its bytes, merge two by two, the pair of the lowest rank first and of those the
//! leftmost, until no pair is left that merges.
//! Invariant: the tokens are those of that rule, and their time grows with the piece: a long one is encoded in windows,
//! and a cut between two stands only where the tokens on its sides, encoded together, stay as they are. Then the whole
//! would be encoded so: the first merge across a cut would be one of the two tokens' bytes alone as well.
//! Not here: where pieces begin and end (`pieces`), what is remembered of them (`known`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::pairs::{Pairs, Rank, Token};
use crate::work;

/// Symbols among which the lowest rank is searched one by one.
const FEW: usize = 64;
/// The same for short pieces, which most are.
const FEWER: usize = 16;
/// The same for those that most pieces are that were never seen.
const FEWEST: usize = 8;
/// Bytes of a window, unless the longest token needs more.
const WINDOW: usize = FEW;
/// A window holds so many of the longest token, where a smaller one does not lead to a cut that stands.
const LONGEST_TOKENS: usize = 4;

/// The number of tokens of a piece.
#[inline(always)]
pub(super) fn count(pairs: &Pairs<'_>, piece: &[u8]) -> u64 {
    if piece.len() <= FEWEST {
        return encode_few::<FEWEST>(pairs, piece, |_| {}) as u64;
    }
    if piece.len() <= FEWER {
        return encode_few::<FEWER>(pairs, piece, |_| {}) as u64;
    }
    if piece.len() <= FEW {
        return encode_few::<FEW>(pairs, piece, |_| {}) as u64;
    }
    count_windows(pairs, piece)
}

/// The sum of what `count` says of each part of a piece, between places that no token lies across.
pub(super) fn count_parts(
    pairs: &Pairs<'_>,
    piece: &[u8],
    mut count: impl FnMut(Range<usize>) -> u64,
) -> u64 {
    work::note(piece.len());
    let (mut tokens, mut from) = (0, 0);
    for at in 1..=piece.len() {
        if at == piece.len() || !pairs.may_join(piece, at) {
            tokens += count(from..at);
            from = at;
        }
    }
    tokens
}

/// Goes through the piece window by window; a window begins in the middle of the one before.
fn count_windows(pairs: &Pairs<'_>, piece: &[u8]) -> u64 {
    let mut settled = 0;
    let mut at = 0;
    let mut window = Window::encode(pairs, piece, at, WINDOW);
    while window.end(at) < piece.len() {
        let Some((tokens, cut, next)) = window.cut(pairs, piece, at) else {
            let longer = (window.bytes * 2).max(pairs.longest() * LONGEST_TOKENS);
            window = Window::encode(pairs, piece, at, longer);
            continue;
        };
        settled += tokens;
        at = cut;
        window = next;
    }
    (settled + window.tokens.len()) as u64
}

/// A stretch of a piece, encoded as if nothing stood around it.
struct Window {
    bytes: usize,
    /// Each with its length in bytes.
    tokens: Vec<(Token, usize)>,
}

impl Window {
    fn encode(pairs: &Pairs<'_>, piece: &[u8], at: usize, bytes: usize) -> Self {
        let end = piece.len().min(at.saturating_add(bytes));
        let text = piece.get(at..end).unwrap_or_default();
        let mut tokens = Vec::with_capacity(text.len() / 2);
        encode(pairs, text, &mut tokens);
        Self {
            bytes: text.len(),
            tokens,
        }
    }

    const fn end(&self, at: usize) -> usize {
        at + self.bytes
    }

    /// The last cut in its first three quarters that stands: how many tokens lie before it, where it is, and the window
    /// behind it. A few are tried.
    fn cut(&self, pairs: &Pairs<'_>, piece: &[u8], at: usize) -> Option<(usize, usize, Self)> {
        let mut cut = at;
        let mut cuts = Vec::with_capacity(self.tokens.len());
        for (index, &(token, length)) in self.tokens.iter().enumerate() {
            cut += length;
            if cut - at <= self.bytes * 3 / 4 {
                cuts.push((index + 1, cut, token, length));
            }
        }
        cuts.into_iter()
            .rev()
            .take(4)
            .find_map(|(tokens, cut, token, length)| {
                let next = Self::encode(pairs, piece, cut, self.bytes);
                let &(first, first_length) = next.tokens.first()?;
                let both = piece.get(cut - length..cut + first_length)?;
                let mut encoded = Vec::with_capacity(both.len());
                encode(pairs, both, &mut encoded);
                (encoded == [(token, length), (first, first_length)]).then_some((tokens, cut, next))
            })
    }
}

/// The tokens of a text and their lengths.
fn encode(pairs: &Pairs<'_>, text: &[u8], tokens: &mut Vec<(Token, usize)>) {
    if text.len() <= FEW {
        encode_few::<FEW>(pairs, text, |token| tokens.push(token));
    } else {
        encode_many(pairs, text, tokens);
    }
}

/// For at most `N` bytes: the lowest rank is searched among all.
#[inline(always)]
fn encode_few<const N: usize>(
    pairs: &Pairs<'_>,
    text: &[u8],
    mut tell: impl FnMut((Token, usize)),
) -> usize {
    // By the place of a symbol's first byte: the symbol, and when it merges with the symbol behind it.
    let mut symbols = [0; N];
    let mut orders = [NEVER; N];
    let length = text.len().min(N);
    work::note(length);
    let mut last = None;
    for (at, byte) in text.iter().enumerate().take(N) {
        if let Some((before, left)) = last.replace((at, *byte)) {
            put(
                &mut orders,
                before,
                order(pairs.merge_bytes(left, *byte), before),
            );
        }
        put(&mut symbols, at, pairs.byte(*byte));
    }
    // A bit for each place at which a symbol begins.
    let mut begins = u64::MAX
        .checked_shr(FEW as u32 - length as u32)
        .unwrap_or(0);
    loop {
        work::note(1);
        // Over all places, so that it is a few vector instructions.
        let lowest = orders
            .iter()
            .fold(NEVER, |lowest, order| lowest.min(*order));
        if lowest == NEVER {
            break;
        }
        let at = (lowest & PLACE_MASK) as usize;
        let symbol = pairs.token((lowest / FEW as i32) as Rank);
        // The symbol behind it goes.
        let gone = behind(begins, at);
        begins &= !(1 << (gone % FEW));
        put(&mut orders, gone, NEVER);
        put(&mut symbols, at, symbol);
        let next = behind(begins, at);
        let merge = (next < FEW).then(|| pairs.merge(symbol, get(&symbols, next)));
        put(&mut orders, at, order(merge.flatten(), at));
        let before = begins & !(u64::MAX << at);
        if before != 0 {
            let before = FEW - 1 - before.leading_zeros() as usize;
            let merge = pairs.merge(get(&symbols, before), symbol);
            put(&mut orders, before, order(merge, before));
        }
    }
    let count = begins.count_ones() as usize;
    while begins != 0 {
        let at = begins.trailing_zeros() as usize;
        begins &= begins - 1;
        let end = begins.trailing_zeros() as usize;
        tell((get(&symbols, at), end.min(length) - at));
    }
    count
}

/// Where the symbol behind the one at this place begins; none where that is no place.
#[inline(always)]
const fn behind(begins: u64, at: usize) -> usize {
    (begins & u64::MAX << 1 << at).trailing_zeros() as usize
}

/// No merge.
const NEVER: i32 = i32::MAX;
/// The bits of a place among [`FEW`].
const PLACE_MASK: i32 = FEW as i32 - 1;

/// Rank and place in one number: the least is the lowest rank, and of those the leftmost.
#[inline]
fn order(rank: Option<Rank>, at: usize) -> i32 {
    // A rank has 22 bits.
    rank.map_or(NEVER, |rank| (rank as i32 * FEW as i32) | at as i32)
}

/// Of a place that is one of the list's.
#[inline]
fn get<T: Copy + Default, const N: usize>(list: &[T; N], at: usize) -> T {
    list.get(at % N).copied().unwrap_or_default()
}

#[inline]
fn put<T, const N: usize>(list: &mut [T; N], at: usize, value: T) {
    if let Some(place) = list.get_mut(at % N) {
        *place = value;
    }
}

/// For any number of bytes: the pairs wait in a heap.
fn encode_many(pairs: &Pairs<'_>, text: &[u8], tokens: &mut Vec<(Token, usize)>) {
    const GONE: Token = Token::MAX;
    work::note(text.len());
    let mut symbols: Vec<Symbol> = text
        .iter()
        .enumerate()
        .map(|(at, byte)| Symbol {
            token: pairs.byte(*byte),
            end: at + 1,
            before: at.wrapping_sub(1),
        })
        .collect();
    let mut waiting = BinaryHeap::with_capacity(text.len());
    let wait = |waiting: &mut BinaryHeap<_>, symbols: &[Symbol], at: usize| {
        work::note(1);
        let left = symbols.get(at)?;
        let right = symbols.get(left.end)?;
        let rank = pairs.merge(left.token, right.token)?;
        waiting.push(Reverse((rank, at, left.token, right.token)));
        Some(())
    };
    for at in 0..symbols.len() {
        wait(&mut waiting, &symbols, at);
    }
    while let Some(Reverse((rank, at, left, right))) = waiting.pop() {
        work::note(1);
        let Some(symbol) = symbols.get(at).filter(|symbol| symbol.token == left) else {
            continue;
        };
        let next = symbol.end;
        let before = symbol.before;
        let Some(gone) = symbols.get_mut(next).filter(|next| next.token == right) else {
            continue;
        };
        gone.token = GONE;
        let end = gone.end;
        if let Some(symbol) = symbols.get_mut(at) {
            symbol.token = pairs.token(rank);
            symbol.end = end;
        }
        if let Some(behind) = symbols.get_mut(end) {
            behind.before = at;
        }
        wait(&mut waiting, &symbols, at);
        wait(&mut waiting, &symbols, before);
    }
    let mut at = 0;
    while let Some(symbol) = symbols.get(at) {
        tokens.push((symbol.token, symbol.end - at));
        at = symbol.end;
    }
}

/// One symbol of a text, at the place of its first byte.
struct Symbol {
    token: Token,
    /// The place of the symbol behind it.
    end: usize,
    /// The place of the one before it.
    before: usize,
}

#[cfg(test)]
mod tests;
