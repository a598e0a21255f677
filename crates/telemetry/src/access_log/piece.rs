//! The gate's own words in a line, of a width that is copied in two moves.
//!
//! Invariant: made when the gate is compiled; a text that is too long does not compile.
//! Not here: where they are written (`json_writer`).

/// A few of the gate's own words, quotes and all.
pub(super) struct Piece {
    pub(super) bytes: [u8; Piece::MOST],
    pub(super) len: usize,
}

impl Piece {
    /// Two moves of 16 bytes.
    const MOST: usize = 32;

    /// These texts, one after the other.
    pub(super) const fn new(texts: [&str; 3]) -> Self {
        let mut piece = Self {
            bytes: [0; Self::MOST],
            len: 0,
        };
        let mut nth = 0;
        while nth < texts.len() {
            let text = texts[nth].as_bytes();
            let mut at = 0;
            while at < text.len() {
                piece.bytes[piece.len] = text[at];
                piece.len += 1;
                at += 1;
            }
            nth += 1;
        }
        piece
    }
}
