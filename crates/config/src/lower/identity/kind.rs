//! The kinds of a source of identity, as the document writes them.
//!
//! Invariant: a field of the schema is named here, so that a new one has to be said to be a kind or not.
//! Not here: what becomes of a kind (`identity`, whose match is exhaustive).

use crate::decode::{At, Field, MapOf};
use crate::scalar::{Name, Text};
use crate::schema::identity::{IdentitySource, Introspection, Jwt, Keys, Login, TokenReview};

/// One of the ways to recognise callers that a source may have, but for a header.
pub(super) enum Kind<'w> {
    Keys(&'w Field<Keys>),
    Static,
    Jwt(&'w Field<Jwt>),
    Introspection(&'w Field<Introspection>),
    Login(&'w Field<Login>),
    TokenReview(&'w Field<TokenReview>),
    Certificates(&'w Field<MapOf<Text, At<Name>>>),
}

/// Those that are written, in the order in which the first counts.
pub(super) fn kinds(source: &IdentitySource) -> impl Iterator<Item = Kind<'_>> {
    let IdentitySource {
        keys,
        static_keys,
        jwt,
        introspection,
        token_review,
        login,
        certificates,
        header: _,
        user_header: _,
        default: _,
        from: _,
        from_certificates: _,
        trust: _,
        call_user: _,
        record_user: _,
    } = source;
    let kinds = [
        (keys.is_absent(), Kind::Keys(keys)),
        (static_keys.is_absent(), Kind::Static),
        (jwt.is_absent(), Kind::Jwt(jwt)),
        (
            introspection.is_absent(),
            Kind::Introspection(introspection),
        ),
        (login.is_absent(), Kind::Login(login)),
        (token_review.is_absent(), Kind::TokenReview(token_review)),
        (certificates.is_absent(), Kind::Certificates(certificates)),
    ];
    let written = kinds.into_iter().filter(|(is_absent, _)| !is_absent);
    written.map(|(_, kind)| kind)
}
