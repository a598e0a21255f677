//! Writing JSON, commas included.

use wire::json::is_plain;

use crate::raw::Raw;

/// JSON that is being written.
#[derive(Debug, Default)]
pub(crate) struct Json {
    out: Vec<u8>,
    is_comma_due: bool,
}

impl Json {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
            is_comma_due: false,
        }
    }

    /// Goes on behind what was written.
    pub(crate) fn onto(out: &mut Vec<u8>) -> Self {
        Self {
            out: std::mem::take(out),
            is_comma_due: false,
        }
    }

    /// Bytes that are written.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes what is no JSON, between documents.
    pub(crate) fn outside(&mut self, bytes: &str) {
        self.out.extend_from_slice(bytes.as_bytes());
        self.is_comma_due = false;
    }

    #[inline]
    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_comma_due, true) {
            self.out.push(b',');
        }
    }

    /// What a value or a member begins with, to the value within it that is to be written next.
    #[inline]
    pub(crate) fn lead(&mut self, json: &'static str) {
        self.begin();
        self.out.extend_from_slice(json.as_bytes());
        self.is_comma_due = false;
    }

    /// What ends that, behind the value.
    #[inline]
    pub(crate) fn trail(&mut self, json: &'static str) {
        self.out.extend_from_slice(json.as_bytes());
        self.is_comma_due = true;
    }

    /// Begins an object that whoever takes the bytes goes on with.
    pub(crate) fn open_object(&mut self) {
        self.open(b'{');
    }

    fn open(&mut self, bracket: u8) {
        self.begin();
        self.out.push(bracket);
        self.is_comma_due = false;
    }

    fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.is_comma_due = true;
    }

    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.open(b'{');
        members(self);
        self.close(b'}');
    }

    pub(crate) fn list(&mut self, items: impl FnOnce(&mut Self)) {
        self.open(b'[');
        items(self);
        self.close(b']');
    }

    /// An object whose members may fail to be said.
    pub(crate) fn try_object<E>(
        &mut self,
        members: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{');
        members(self)?;
        self.close(b'}');
        Ok(())
    }

    /// A list whose items may fail to be said.
    pub(crate) fn try_list<E>(
        &mut self,
        items: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[');
        items(self)?;
        self.close(b']');
        Ok(())
    }

    /// The name of the member whose value follows: one of an API, which has nothing to escape.
    #[inline(always)]
    pub(crate) fn key(&mut self, name: &'static str) -> &mut Self {
        self.out.reserve(name.len() + 4);
        self.begin();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.is_comma_due = false;
        self
    }

    /// The name of the member whose value follows, whatever it is.
    pub(crate) fn name(&mut self, name: &str) {
        self.text(name);
        self.out.push(b':');
        self.is_comma_due = false;
    }

    /// A text with nothing to escape.
    #[inline]
    pub(crate) fn word(&mut self, word: &'static str) {
        self.begin();
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    pub(crate) fn text(&mut self, text: &str) {
        if is_plain(text.as_bytes()) {
            self.out.reserve(text.len() + 3);
            self.begin();
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
            return;
        }
        self.begin();
        let written = serde_json::to_writer(&mut self.out, text);
        debug_assert!(written.is_ok(), "a vector takes every text");
    }

    /// A value as it came. Line ends between its members become blanks: one would end the line of an event.
    pub(crate) fn raw(&mut self, value: Raw<'_>) {
        self.begin();
        let from = self.out.len();
        self.out.extend_from_slice(value.json().as_bytes());
        let written = self.out.get_mut(from..).unwrap_or_default();
        for byte in written
            .iter_mut()
            .filter(|byte| matches!(byte, b'\n' | b'\r'))
        {
            *byte = b' ';
        }
    }

    /// Members that are JSON already, commas between them.
    pub(crate) fn members(&mut self, members: &str) {
        if !members.is_empty() {
            self.begin();
            self.out.extend_from_slice(members.as_bytes());
        }
    }

    pub(crate) fn whole(&mut self, number: u64) {
        self.begin();
        if let Some(digit) = u8::try_from(number).ok().filter(|digit| *digit < 10) {
            // As most counts of what a cache did are.
            return self.out.push(b'0' + digit);
        }
        let written = serde_json::to_writer(&mut self.out, &number);
        debug_assert!(written.is_ok(), "a vector takes every number");
    }

    pub(crate) fn flag(&mut self, is: bool) {
        self.raw(Raw::literal(if is { "true" } else { "false" }));
    }

    pub(crate) fn null(&mut self) {
        self.raw(Raw::literal("null"));
    }

    /// The member `name` as this text.
    #[inline]
    pub(crate) fn say(&mut self, name: &'static str, text: &str) {
        self.key(name).text(text);
    }
}
