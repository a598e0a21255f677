//! Tokens by what they are of: a list of kinds with their counts, as Google reports them
//! (<https://ai.google.dev/api/generate-content#ModalityTokenCount>).

use crate::json::{Kind, Reader};

/// The count of what is sound, as it is written; `None` where the list says nothing of it.
pub(super) fn audio(list: &[u8]) -> Option<(Kind, &[u8])> {
    let mut rest = list.strip_prefix(b"[")?;
    loop {
        let mut item = Reader::new(rest);
        if item.kind()? != Kind::Object {
            return None;
        }
        let (mut is_audio, mut tokens) = (false, None);
        let mut more = item.open()?;
        while more {
            let name = item.name()?;
            let value = item.value()?;
            match &*name {
                b"modality" => is_audio = value.1 == b"\"AUDIO\"",
                b"tokenCount" => tokens = Some(value),
                _ => {}
            }
            more = item.more()?;
        }
        if is_audio {
            return tokens;
        }
        let after = rest.get(item.place()..)?.trim_ascii_start();
        rest = after.strip_prefix(b",")?;
    }
}
