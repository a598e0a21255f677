//! The shape of a call: which of the things that are rendered in ways of their own its prompt has in it.
//!
//! What agrees with the engine for one shape says nothing of another: a template may be right about words and wrong
//! about tools. So counts are compared, and believed, by feature (`calibration`).
//! Invariant: a shape is made of the call alone; the same body has the same shape, whether it is read or remembered.
//! Not here: finding the features of a body (`features`).

use std::fmt;

/// Declares the features with the word for each.
macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident = $word:literal,)*) => {
        /// One thing that a prompt may have in it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Feature {
            $($(#[$doc])* $feature,)*
        }

        impl Feature {
            /// All of them, in the order in which they are named.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$feature),*];

            /// How many there are.
            pub const COUNT: usize = [$($word),*].len();

            /// The word for it, in metrics and messages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$feature => $word,)*
                }
            }
        }
    };
}

features! {
    /// A call of chat completions.
    Chat = "chat",
    /// A text completion.
    Text = "text",
    /// A call of the Responses API.
    Responses = "responses",
    /// A call of Anthropic's Messages API.
    Messages = "messages",
    /// A call for embeddings.
    Embeddings = "embeddings",
    /// Something that the assistant said before.
    History = "history",
    /// Tools, also an empty list of them where that is not the same as none.
    Tools = "tools",
    /// A tool whose schema has more than plain members: objects, lists, choices or references in members.
    Nested = "nested",
    /// Tools that the call forbids to use (`tool_choice: none`).
    Forbidden = "forbidden",
    /// The assistant's calls of tools.
    Calls = "calls",
    /// What tools answered.
    Answers = "answers",
    /// A system prompt.
    System = "system",
    /// A system message behind another message.
    InlineSystem = "inline_system",
    /// A developer's message.
    Developer = "developer",
    /// A message of any other role, which only templates know.
    Roles = "roles",
    /// A message that names who speaks.
    Names = "names",
    /// A message of several parts, or of one that has more than its text.
    Parts = "parts",
    /// A message without text.
    Empty = "empty",
    /// What the assistant thought before.
    Reasoning = "reasoning",
    /// An effort, or thinking that is switched off.
    Effort = "effort",
    /// Arguments for the chat template.
    Arguments = "arguments",
    /// Documents.
    Documents = "documents",
    /// A last message that is to be continued.
    Continued = "continued",
    /// A prompt that is cut.
    Truncated = "truncated",
    /// Special tokens where the API adds none by itself, or none where it adds some.
    Special = "special",
    /// Several prompts in one call.
    Several = "several",
    /// Token numbers in place of text.
    Numbers = "numbers",
    /// Text beyond ASCII.
    Unicode = "unicode",
    /// Text in which something looks like a special token.
    Marks = "marks",
    /// A prompt of at least [`LONG`] tokens.
    Long = "long",
    /// Pictures that are counted.
    Media = "media",
}

// A shape has a bit for each.
const _: () = assert!(Feature::COUNT <= u32::BITS as usize);

/// From so many tokens on a prompt is long.
pub const LONG: u64 = 4096;

/// The features of one call.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(u32);

impl Shape {
    /// Nothing in particular.
    pub const NONE: Self = Self(0);

    /// The features that say which API a call is of.
    pub const APIS: Self = Self::of(&[
        Feature::Chat,
        Feature::Text,
        Feature::Responses,
        Feature::Messages,
        Feature::Embeddings,
    ]);

    /// These features.
    #[must_use]
    pub const fn of(features: &[Feature]) -> Self {
        let (mut shape, mut rest) = (Self::NONE, features);
        while let [feature, others @ ..] = rest {
            shape = shape.with(*feature);
            rest = others;
        }
        shape
    }

    /// This feature, too.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | 1 << feature as u32)
    }

    /// This feature, too, if that is so.
    #[must_use]
    pub const fn with_if(self, is_so: bool, feature: Feature) -> Self {
        if is_so { self.with(feature) } else { self }
    }

    /// The features of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The features that both have.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The features that the other has not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether it has this feature.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }

    /// Whether it has all features of the other.
    #[must_use]
    pub const fn holds(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    /// Whether it has none at all.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many it has.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Its features, in the order in which they are named.
    pub fn features(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |one| self.has(*one))
    }

    /// As a number, for who remembers it.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// From its number.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// The words of its features with `+` between them.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, feature) in self.features().enumerate() {
            let between = if place == 0 { "" } else { "+" };
            write!(f, "{between}{}", feature.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({self})")
    }
}

#[cfg(test)]
mod tests;
