//! How single values are written.
//!
//! Invariant: a value that reads is in range; nothing later has to check it again.
//! Not here: addresses of backends (`target`).

pub(crate) use admin::AdminRole;
pub(crate) use authority::{Expression, OnFailure, SecretHeader, SystemNames, Template};
pub(crate) use call::{Call, Flag};
pub(crate) use client::{Network, ProxyProtocol, Recorded};
pub(crate) use extra::{AccessKeyId, ExchangeGrant, HeaderValue, QueryName, QueryValue, encoded};
pub(crate) use header::{CredentialHeader, IdentityHeader, PassedHeader, Scheme};
pub(crate) use identity::{
    Algorithm, CallUser, Claim, ClientAuth, ClientCertificates, RecordUser, Text, Trust,
};
pub(crate) use login::{RedirectUrl, Scope};
pub(crate) use name::{Model, Name, Pattern};
pub(crate) use number::{
    Age, Amount, Brief, Charge, Count, Currency, Decimal, Hold, Money, Percent, PricePer, Ratio,
    Size, Span, Status,
};
pub(crate) use period::{Every, Zone};
pub(crate) use source::{File, Inline, SecretFile, Variable};
pub(crate) use web::{Host, Origin};
pub(crate) use word::{
    Address, Apart, BilledBy, Billing, BuiltIn, LogTarget, OtlpProtocol, Protocol, Whose,
};

mod admin;
mod authority;
mod call;
mod client;
mod extra;
mod header;
mod identity;
mod login;
mod name;
mod number;
mod period;
mod source;
mod web;
mod word;

#[cfg(test)]
mod tests;
