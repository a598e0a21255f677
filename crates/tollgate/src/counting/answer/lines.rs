//! The data of server-sent events, out of batches that are cut anywhere.
//!
//! Invariant: lines end with LF, CR or both; several `data` lines of an event are joined by a line end.
//! Not here: what the data says (`answer`).

/// What has come of an event that has not ended.
#[derive(Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last line ended with CR: a line feed now belongs to it.
    after_return: bool,
}

impl Lines {
    /// Takes the next bytes and tells of each event's data.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut tell: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                return;
            };
            self.after_return = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&bytes[..end], &mut tell);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.take_line(&line, &mut tell);
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
    }

    fn take_line(&mut self, line: &[u8], tell: &mut impl FnMut(&[u8])) {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                tell(&self.data);
                self.data.clear();
            }
            return;
        }
        let Some(value) = line.strip_prefix(b"data:") else {
            return;
        };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data
            .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// The data of an event that the end cut off.
    pub(super) fn rest(&mut self) -> Option<&[u8]> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut |_| {});
        }
        self.has_data.then_some(&self.data)
    }
}
