//! What a service adds to the head of an answer.
//!
//! Invariant: only fields `x-…` are taken, few and short ones; what the protocol or the gate goes by is not among them.
//! Not here: whether the answer has such a field already (the host).

use policy::picker::Field;

use super::messages::HeadersResponse;

/// The most fields that one answer gets.
const FIELDS_MAX: usize = 16;
/// The most bytes of one's name and value.
const BYTES_MAX: usize = 1024;

/// The fields that a service says, names in lower case.
pub(super) fn fields(said: &HeadersResponse) -> Vec<Field> {
    let mutation = said.response.as_ref();
    let mutation = mutation.and_then(|said| said.header_mutation.as_ref());
    let set = mutation.iter().flat_map(|of| &of.set_headers);
    let field = |option: &super::messages::HeaderValueOption| -> Option<Field> {
        let header = option.header.as_ref()?;
        let name = header.key.to_ascii_lowercase();
        let value = match header.raw_value.as_slice() {
            [] => header.value.as_bytes(),
            raw => raw,
        };
        let is_short = name.len() + value.len() <= BYTES_MAX;
        let is_taken = is_short && name.starts_with("x-") && !name.starts_with("x-gateway-");
        is_taken.then(|| (name.into_bytes().into(), value.into()))
    };
    set.filter_map(field).take(FIELDS_MAX).collect()
}
