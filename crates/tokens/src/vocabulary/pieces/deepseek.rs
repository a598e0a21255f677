//! The pieces of DeepSeek's pattern since V3, which is three: numbers are cut out first, then runs of Chinese and kana, and
//! each stretch that results is cut by the third on its own.
//!
//! So a stretch ends like a text: white space before a number is one piece. What none of the alternatives takes, controls
//! before no letter, is a piece as well.
//! Not here: ASCII text by masks (`ascii`).

use super::{Class, Place};

/// What the third pattern is given at once, between two numbers or such runs, or a run.
#[derive(Clone, Copy)]
struct Stretch {
    is_chinese: bool,
}

impl Place<'_> {
    /// Where the piece ends that begins here, with a character of this class.
    pub(super) fn past_deepseek(self, class: Class) -> Self {
        if class == Class::Number {
            return self.past_three_numbers();
        }
        let stretch = Stretch {
            is_chinese: self.is_chinese(),
        };
        self.sign_with_letters(class)
            .or_else(|| self.word_with_marks(class, stretch))
            .or_else(|| self.signs(class, stretch))
            .or_else(|| {
                let is_end = |place: Self| place.inside(stretch).is_none();
                class.is_space().then(|| self.space(true, is_end))
            })
            .unwrap_or_else(|| self.past_others(stretch))
    }

    /// The class of the character here, unless the stretch ends before it.
    fn inside(self, stretch: Stretch) -> Option<Class> {
        let class = self.class()?;
        let goes_on = class != Class::Number && self.is_chinese() == stretch.is_chinese;
        goes_on.then_some(class)
    }

    /// `[一-龥぀-ゟ゠-ヿ]`
    fn is_chinese(self) -> bool {
        let character = self.character();
        character.is_some_and(|character| matches!(character, '一'..='龥' | '\u{3040}'..='ヿ'))
    }

    fn past_inside(mut self, stretch: Stretch, is: impl Fn(Class) -> bool) -> Self {
        while self.inside(stretch).is_some_and(&is) {
            self = self.next();
        }
        self
    }

    /// ``[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+``
    fn sign_with_letters(self, class: Class) -> Option<Self> {
        let is_ascii = self.character()?.is_ascii();
        if class != Class::Sign || !is_ascii {
            return None;
        }
        let letters = self.next();
        let mut end = letters;
        while end
            .character()
            .is_some_and(|letter| letter.is_ascii_alphabetic())
        {
            end = end.next();
        }
        (end.at > letters.at).then_some(end)
    }

    /// `[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`
    fn word_with_marks(self, class: Class, stretch: Stretch) -> Option<Self> {
        let is_part = |class: Class| class.is_letter() || class == Class::Mark;
        let letters = match class {
            _ if is_part(class) => self,
            Class::Blank | Class::Other => self.next(),
            _ => return None,
        };
        let end = letters.past_inside(stretch, is_part);
        (end.at > letters.at).then_some(end)
    }

    /// ` ?[\p{P}\p{S}]+[\r\n]*`
    fn signs(self, class: Class, stretch: Stretch) -> Option<Self> {
        let first = match self.character() {
            Some(' ') if class == Class::Blank => self.next(),
            _ => self,
        };
        let end = first.past_inside(stretch, |class| class == Class::Sign);
        (end.at > first.at).then(|| end.past(|class| class == Class::Newline))
    }

    /// As far as no alternative begins.
    fn past_others(mut self, stretch: Stretch) -> Self {
        while self.inside(stretch) == Some(Class::Other)
            && self.word_with_marks(Class::Other, stretch).is_none()
        {
            self = self.next();
        }
        self
    }
}
