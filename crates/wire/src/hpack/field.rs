//! The fields of header blocks, byte by byte (RFC 7541, 6).
//!
//! Invariant: what is changed keeps every length, so that blocks after it read the same.
//! Not here: where blocks begin and end (`hpack`).

use super::huffman::Bits;
use super::table::{Kind, Name, Table};

/// The connection cannot go on: a block is malformed and the library would not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header block of HTTP/2 is malformed")]
pub struct MalformedBlock;

#[derive(Debug)]
pub(super) struct Fields {
    table: Table,
    step: Step,
    is_trailers: bool,
    /// The field being read.
    name: Name,
    value_length: u32,
    is_kept: bool,
}

/// What the next byte is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A field.
    Field,
    /// A number that goes on: so much of it, and the next byte's place.
    Number(Number, u32, u32),
    /// A text's length.
    Length(Text),
    /// A text of so many bytes.
    Text {
        of: Text,
        left: u32,
        /// In Huffman's code.
        bits: Option<Bits>,
    },
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// The index of a whole field.
    Field,
    /// The index of a name; 0 where the name follows.
    Name,
    TableSize,
    Length(Text, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Name,
    Value,
}

/// An index of nothing, for which every reader ends the connection.
const NO_FIELD: u8 = 0x80;
const PATH: &[u8] = b":path";
const NO_NAME: Name = Name {
    kind: Kind::Regular,
    length: 0,
};

impl Default for Fields {
    fn default() -> Self {
        Self {
            table: Table::default(),
            step: Step::Field,
            is_trailers: false,
            name: NO_NAME,
            value_length: 0,
            is_kept: false,
        }
    }
}

impl Fields {
    pub(super) fn begin(&mut self, is_trailers: bool) {
        self.is_trailers = is_trailers;
        self.name = NO_NAME;
        self.step = Step::Field;
    }

    pub(super) fn end(&mut self) {
        self.step = Step::Field;
    }

    /// Reads the next bytes of a block.
    pub(super) fn read(&mut self, block: &mut [u8]) -> Result<(), MalformedBlock> {
        let mut began = None;
        for at in 0..block.len() {
            let Some(byte) = block.get_mut(at) else {
                break;
            };
            if self.step == Step::Field {
                began = Some(at);
            }
            self.byte(byte);
            if self.is_trailers && self.name.kind != Kind::Regular {
                // Once is enough: nobody reads on.
                self.name = NO_NAME;
                let first = began.and_then(|at| block.get_mut(at));
                *first.ok_or(MalformedBlock)? = NO_FIELD;
            }
        }
        Ok(())
    }

    fn byte(&mut self, byte: &mut u8) {
        match self.step {
            Step::Field => self.field(*byte),
            Step::Number(number, value, shift) => {
                let more = u32::from(*byte & 0x7f)
                    .checked_shl(shift)
                    .unwrap_or(u32::MAX);
                let value = value.saturating_add(more);
                if *byte & 0x80 == 0 {
                    self.number(number, value);
                } else {
                    self.step = Step::Number(number, value, shift.saturating_add(7));
                }
            }
            Step::Length(of) => self.begin_number(Number::Length(of, *byte & 0x80 != 0), *byte, 7),
            Step::Text { of, left, mut bits } => {
                match &mut bits {
                    None => {
                        let symbol = *byte;
                        if self.symbol(of, symbol) {
                            *byte = b'>';
                        }
                    }
                    Some(bits) => {
                        for bit in (0..8).rev() {
                            let mask = 1 << bit;
                            let symbol = bits.next(*byte & mask != 0);
                            // The code of `>` is that of `#` with its last bit set.
                            if symbol.is_some_and(|symbol| self.symbol(of, symbol)) {
                                *byte |= mask;
                            }
                        }
                    }
                }
                let left = left - 1;
                self.step = Step::Text { of, left, bits };
                self.end_text(of, left);
            }
        }
    }

    /// A field begins.
    fn field(&mut self, byte: u8) {
        self.name = NO_NAME;
        self.value_length = 0;
        self.is_kept = byte & 0xc0 == 0x40;
        match byte {
            0x80.. => self.begin_number(Number::Field, byte, 7),
            0x40.. => self.begin_number(Number::Name, byte, 6),
            0x20.. => self.begin_number(Number::TableSize, byte, 5),
            _ => self.begin_number(Number::Name, byte, 4),
        }
    }

    /// A number begins in the lowest bits of a byte.
    fn begin_number(&mut self, number: Number, byte: u8, bits: u32) {
        let most = (1 << bits) - 1;
        let value = u32::from(byte) & most;
        if value == most {
            self.step = Step::Number(number, value, 0);
        } else {
            self.number(number, value);
        }
    }

    /// A number is whole.
    fn number(&mut self, number: Number, value: u32) {
        self.step = match number {
            Number::Field => {
                self.name = self.table.name(value).unwrap_or(NO_NAME);
                Step::Field
            }
            Number::TableSize => {
                self.table.resize(value);
                Step::Field
            }
            Number::Name if value == 0 => Step::Length(Text::Name),
            Number::Name => {
                self.name = self.table.name(value).unwrap_or(NO_NAME);
                Step::Length(Text::Value)
            }
            Number::Length(of, is_coded) => Step::Text {
                of,
                left: value,
                bits: is_coded.then(Bits::default),
            },
        };
        if let Number::Length(of, _) = number {
            self.end_text(of, value);
        }
    }

    /// Takes a symbol of a text. Whether it begins a fragment in a path.
    fn symbol(&mut self, of: Text, symbol: u8) -> bool {
        match of {
            Text::Name => {
                let at = self.name.length as usize;
                let begins_path = at == 0 || self.name.kind == Kind::Path;
                self.name.kind = match (begins_path && PATH.get(at) == Some(&symbol), at) {
                    (true, _) => Kind::Path,
                    (false, 0) => Kind::Regular,
                    (false, _) if self.name.kind == Kind::Path => Kind::Pseudo,
                    (false, _) => self.name.kind,
                };
                self.name.length = self.name.length.saturating_add(1);
                false
            }
            Text::Value => {
                self.value_length = self.value_length.saturating_add(1);
                self.name.kind == Kind::Path && symbol == b'#'
            }
        }
    }

    /// Goes on to what follows a text that has no byte left.
    fn end_text(&mut self, of: Text, left: u32) {
        if left > 0 {
            return;
        }
        match of {
            Text::Name => {
                // `:pa` is the beginning of the name and another.
                if self.name.kind == Kind::Path && self.name.length as usize != PATH.len() {
                    self.name.kind = Kind::Pseudo;
                }
                self.step = Step::Length(Text::Value);
            }
            Text::Value => {
                if self.is_kept {
                    self.table.insert(self.name, self.value_length);
                }
                self.step = Step::Field;
            }
        }
    }
}
