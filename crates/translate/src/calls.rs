//! The calls of tools that an answer tells, put in order before a writer is told.
//!
//! Providers' numbers of calls are used twice, names are told again with each piece, and pieces come before names. Invariant: a writer is
//! told of each call once, with a number, an id and a name that are its alone, and of its arguments after that. A call that cannot be
//! told so is no end of an answer.

use std::collections::HashMap;

use wire::filter::Stop;

use crate::answer::{Event, Finish};

/// What stands before ids of calls that were made here, for a provider that gave none.
pub(crate) const MADE: &str = "call_tollgate_";

/// The calls of one answer.
#[derive(Debug)]
pub(crate) struct Calls {
    /// What ids that are made here have of their answer.
    answer: u64,
    /// The last call of each of the provider's numbers.
    last: HashMap<u32, Call>,
    /// How many were told.
    told: u32,
    held: usize,
    kept: usize,
}

#[derive(Debug)]
enum Call {
    /// Its name is to come.
    Unnamed {
        id: String,
        signature: Option<String>,
        arguments: String,
    },
    Told {
        number: u32,
        id: String,
        name: String,
        shape: Shape,
    },
}

impl Calls {
    /// Of an answer that began at this second of Unix time.
    pub(crate) fn new(unix_s: u64) -> Self {
        Self {
            answer: unix_s,
            last: HashMap::new(),
            told: 0,
            held: 0,
            kept: 0,
        }
    }

    /// Passes an event on, or keeps what it says of a call that cannot be told yet.
    ///
    /// # Errors
    /// The answer ends without a call that it promised.
    pub(crate) fn pass(
        &mut self,
        event: Event<'_>,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match event {
            Event::Begin { id, .. } if !id.is_empty() => self.answer = hash(&[id]),
            Event::Call {
                nth,
                id,
                name,
                signature,
            } => return self.call(nth, id, name, signature, tell),
            Event::Arguments { nth, json } => return self.arguments(nth, json, tell),
            Event::End(ref finish, _) => self.may_end(finish)?,
            _ => {}
        }
        tell(event)
    }

    fn call(
        &mut self,
        nth: u32,
        id: &str,
        name: &str,
        signature: Option<&str>,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let known = self.last.remove(&nth);
        let (first_id, first_signature, arguments) = match known {
            Some(told @ Call::Told { .. }) if told.is_said_again(id, name) => {
                self.last.insert(nth, told);
                return Ok(());
            }
            Some(Call::Unnamed {
                id,
                signature,
                arguments,
            }) => (id, signature, arguments),
            _ => (String::new(), None, String::new()),
        };
        let id = if first_id.is_empty() { id } else { &first_id };
        let signature = first_signature.as_deref().or(signature);
        if name.is_empty() {
            self.held += id.len() - first_id.len();
            let call = Call::Unnamed {
                id: id.to_owned(),
                signature: signature.map(str::to_owned),
                arguments,
            };
            self.last.insert(nth, call);
            return Ok(());
        }
        self.held = self.held.saturating_sub(first_id.len() + arguments.len());
        let number = self.told;
        self.told += 1;
        let id = match id.is_empty() {
            // OpenAI takes 40 bytes.
            true => format!("{MADE}{:016x}_{number}", self.answer),
            false => id.to_owned(),
        };
        self.kept += id.len() + name.len() + size_of::<Call>();
        tell(Event::Call {
            nth: number,
            id: &id,
            name,
            signature,
        })?;
        let name = name.to_owned();
        let call = Call::Told {
            number,
            id,
            name,
            shape: Shape::default(),
        };
        self.last.insert(nth, call);
        match arguments.is_empty() {
            true => Ok(()),
            false => self.arguments(nth, &arguments, tell),
        }
    }

    fn arguments(
        &mut self,
        nth: u32,
        json: &str,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let call = self.last.entry(nth).or_insert_with(|| Call::Unnamed {
            id: String::new(),
            signature: None,
            arguments: String::new(),
        });
        match call {
            Call::Unnamed { arguments, .. } => {
                arguments.push_str(json);
                self.held += json.len();
                Ok(())
            }
            // Some engines end arguments with a line break, when the next call may have begun.
            Call::Told { shape, .. } if shape.is_whole() && json.trim_ascii().is_empty() => Ok(()),
            Call::Told { number, shape, .. } => {
                shape.read(json);
                let nth = *number;
                tell(Event::Arguments { nth, json })
            }
        }
    }

    fn may_end(&self, finish: &Finish) -> Result<(), Stop> {
        let mut calls = self.last.values();
        let is_missing = match finish {
            // It was cut off, and a call with it.
            Finish::Length | Finish::Refused => false,
            Finish::ToolCalls if self.told == 0 => true,
            _ => calls.any(|call| matches!(call, Call::Unnamed { .. })),
        };
        match is_missing {
            true => Err(Stop::Malformed),
            false => Ok(()),
        }
    }

    /// Bytes of what is not told yet.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Bytes of what is known of the calls that were told.
    pub(crate) const fn kept(&self) -> usize {
        self.kept
    }
}

impl Call {
    /// Whether this says the call again that was told, and begins none that has its number.
    fn is_said_again(&self, said_id: &str, said_name: &str) -> bool {
        let Self::Told {
            id, name, shape, ..
        } = self
        else {
            return false;
        };
        // Some engines make another id for each piece; some give none.
        said_name.is_empty()
            || said_id == id
            || (said_name == name && said_id.is_empty() && !shape.is_whole())
    }
}

/// FNV-1a, of texts one after the other.
pub(crate) fn hash(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// How far a JSON object is that comes in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    depth: u32,
    in_text: bool,
    is_escaped: bool,
    has_begun: bool,
}

impl Shape {
    pub(crate) fn read(&mut self, json: &str) {
        for byte in json.bytes() {
            match (self.in_text, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (true, b'"') => self.in_text = false,
                (true, _) => {}
                (false, b'"') => self.in_text = true,
                (false, b'{' | b'[') => {
                    self.depth += 1;
                    self.has_begun = true;
                }
                (false, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
                (false, _) => {}
            }
        }
    }

    pub(crate) const fn is_whole(self) -> bool {
        self.has_begun && self.depth == 0
    }
}
