//! Members and items, found in one pass that looks at many bytes together.
//!
//! Invariant: what it gives is what the slower reader (`serde_json`) gives; where it gives nothing, nothing is said, and that one reads.
//! Not here: what is made of them (`raw`).

use std::borrow::Cow;

use wire::json::Reader;

use super::{MEMBERS_MAX, Object, Raw, Text};

/// Members that most objects of a call have, at most.
const MOST: usize = 8;

/// A document that is read from its start to its end.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    text: &'a str,
    pub(crate) reader: Reader<'a>,
}

impl<'a> Members<'a> {
    /// At the start of a document.
    pub(crate) const fn of(text: &'a str) -> Self {
        Self {
            text,
            reader: Reader::new(text.as_bytes()),
        }
    }

    /// The next member's name, where that is written without escapes and has no blank behind it.
    #[inline]
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        const AFTER: &str = "\":";
        let Cow::Borrowed(found) = self.reader.name()? else {
            return None;
        };
        let length = found.len();
        let end = self.reader.place().checked_sub(AFTER.len())?;
        let name = self.text.get(end.checked_sub(length)?..end)?;
        let before = self.text.as_bytes().get((end - length).checked_sub(1)?);
        let is_its = before == Some(&b'"') && self.text.get(end..)?.starts_with(AFTER);
        (is_its && !name.is_empty()).then_some(name)
    }

    /// The value that starts here, past which it goes.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let length = self.reader.value()?.1.len();
        let end = self.reader.place();
        self.text.get(end.checked_sub(length)?..end).map(Raw)
    }

    /// The object that starts here.
    pub(super) fn object(&mut self) -> Option<Object<'a>> {
        let mut more = self.reader.open()?;
        let mut members: Vec<(Cow<'a, str>, Option<Raw<'a>>)> = Vec::with_capacity(MOST);
        while more {
            let name = self.name()?;
            let is_known = members.iter().any(|(earlier, _)| *earlier == name);
            if is_known || members.len() == MEMBERS_MAX {
                return None;
            }
            members.push((name.into(), Some(self.value()?)));
            more = self.reader.more()?;
        }
        Some(Object(members))
    }

    /// The objects of the list that starts here.
    pub(super) fn objects(&mut self) -> Option<Vec<Object<'a>>> {
        let mut more = self.reader.open_list()?;
        let mut objects = Vec::new();
        while more {
            objects.push(self.object()?);
            more = self.reader.more_items()?;
        }
        Some(objects)
    }

    /// What `read` gives, where it goes to the document's end.
    #[inline]
    pub(crate) fn whole<T>(mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let read = read(&mut self)?;
        self.reader.is_at_end().then_some(read)
    }
}

/// Members of one object that were read, a bit for each.
#[derive(Debug, Default)]
pub(crate) struct Seen(u16);

impl Seen {
    /// `None` where this member has come before.
    #[inline]
    pub(crate) fn once(&mut self, member: u16) -> Option<()> {
        let bit = 1 << member;
        let is_first = self.0 & bit == 0;
        self.0 |= bit;
        is_first.then_some(())
    }

    /// Puts a text in its place, once; null is none.
    #[inline]
    pub(crate) fn text<'a>(
        &mut self,
        member: u16,
        into: &mut Option<Text<'a>>,
        value: Raw<'a>,
    ) -> Option<()> {
        self.once(member)?;
        if value.is_text() {
            *into = Some(Text(value.text().ok()?));
            return Some(());
        }
        value.is_null().then_some(())
    }
}
