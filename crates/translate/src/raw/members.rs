//! Members and items, found in one pass that looks at many bytes together.
//!
//! Invariant: what it gives is what the slower reader (`serde_json`) gives; where it gives nothing, nothing is said, and that one reads.
//! Not here: what is made of them (`raw`).

use std::borrow::Cow;

use wire::json::{Kind, Reader};

use super::{MEMBERS_MAX, Object, Raw, Text};
use crate::report::{Count, Told};

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
    #[inline(always)]
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        let at = self.reader.plain_name()?;
        self.text.get(at)
    }

    /// The text that starts here, where it has no escapes.
    #[inline(always)]
    pub(crate) fn plain_text(&mut self) -> Option<&'a str> {
        let at = self.reader.plain_text()?;
        self.text.get(at)
    }

    /// The text that starts here; null is none.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Option<Option<Text<'a>>> {
        match self.plain_text() {
            Some(plain) => Some(Some(Text(Cow::Borrowed(plain)))),
            None => self.other_text(),
        }
    }

    #[inline(never)]
    fn other_text(&mut self) -> Option<Option<Text<'a>>> {
        let value = self.value()?;
        match value.is_null() {
            true => Some(None),
            false => Some(Some(Text(value.text().ok()?))),
        }
    }

    /// The small number that starts here.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u32> {
        match self.reader.short_count() {
            Some(number) => Some(number),
            None => self.value()?.json().parse().ok(),
        }
    }

    /// The value that starts here, past which it goes.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let length = self.reader.value()?.1.len();
        let end = self.reader.place();
        self.text.get(end.checked_sub(length)?..end).map(Raw)
    }

    /// Goes through the object that starts here: `read` is told each name, and goes past the value.
    #[inline(always)]
    pub(crate) fn each(
        &mut self,
        mut read: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        let mut more = self.reader.open()?;
        while more {
            let name = self.name()?;
            read(self, name)?;
            more = self.reader.more()?;
        }
        Some(())
    }

    /// The items of the list that starts here, each of which `read` goes past: so many, where there are any, as lists of their kind have
    /// mostly.
    #[inline(always)]
    pub(crate) fn list<T>(
        &mut self,
        mostly: usize,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut more = self.reader.open_list()?;
        let mut items = Vec::with_capacity(if more { mostly } else { 0 });
        while more {
            items.push(read(self)?);
            more = self.reader.more_items()?;
        }
        Some(items)
    }

    /// The object that starts here.
    pub(crate) fn object(&mut self) -> Option<Object<'a>> {
        let (object, _) = self.object_and(None, |_| None::<()>)?;
        Some(object)
    }

    /// The object that starts here without one member, and what `read` makes of that, past which it goes.
    #[inline]
    pub(crate) fn object_and<T>(
        &mut self,
        other: Option<&str>,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<(Object<'a>, Option<T>)> {
        let mut members: Vec<(Cow<'a, str>, Option<Raw<'a>>)> = Vec::with_capacity(MOST);
        let mut made = None;
        self.each(|reader, name| {
            if Some(name) == other {
                let made = made.replace(read(reader)?);
                return made.is_none().then_some(());
            }
            let is_known = members.iter().any(|(earlier, _)| *earlier == name);
            if is_known || members.len() == MEMBERS_MAX {
                return None;
            }
            members.push((name.into(), Some(reader.value()?)));
            Some(())
        })?;
        Some((Object(members), made))
    }

    /// The objects of the list that starts here.
    pub(super) fn objects(&mut self) -> Option<Vec<Object<'a>>> {
        self.list(MOST, Self::object)
    }

    /// What `read` gives, where it goes to the document's end.
    #[inline]
    pub(crate) fn whole<T>(mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let read = read(&mut self)?;
        self.reader.is_at_end().then_some(read)
    }
}

/// Members of one object that were read, a bit for each. What stands twice is put twice, and then nothing is read.
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
    #[inline(always)]
    pub(crate) fn text<'a>(
        &mut self,
        member: u16,
        into: &mut Option<Text<'a>>,
        members: &mut Members<'a>,
    ) -> Option<()> {
        *into = members.text()?;
        self.once(member)
    }

    /// Passes a member that is read elsewhere where it is not null.
    #[inline]
    pub(crate) fn null(&mut self, member: u16, value: Raw<'_>) -> Option<()> {
        self.once(member)?;
        value.is_null().then_some(())
    }

    /// Puts a count in its place, once; null is none. `None` as well where it is no whole number: what is made of that, the slower reader
    /// says.
    #[inline]
    pub(crate) fn count(
        &mut self,
        member: u16,
        into: &mut Count,
        members: &mut Members<'_>,
    ) -> Option<()> {
        self.once(member)?;
        if let Some(count) = members.reader.short_count() {
            *into = Count(Some(count.into()));
            return Some(());
        }
        let value = members.value()?;
        if !value.is_null() {
            *into = Count(Some(value.whole().ok()?));
        }
        Some(())
    }

    /// Puts an object in its place, once; null is none.
    #[inline]
    pub(crate) fn told<'a, T>(
        &mut self,
        member: u16,
        into: &mut Told<T>,
        members: &mut Members<'a>,
        read: impl FnOnce(&mut Members<'a>) -> Option<T>,
    ) -> Option<()> {
        self.once(member)?;
        if members.reader.kind()? == Kind::Null {
            return members.reader.pass();
        }
        *into = Told(Some(read(members)?));
        Some(())
    }
}
