//! Attributes that leave what they mark as it is.

use proc_macro::TokenStream;

/// What a function promises, for the verifier alone.
#[proc_macro_attribute]
pub fn verus_spec(_promise: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// That the verifier shall look at an item.
#[proc_macro_attribute]
pub fn verus_verify(_how: TokenStream, item: TokenStream) -> TokenStream {
    item
}
