//! Whose a kept response is.

use std::sync::Arc;

use super::Principal;
use crate::authority::{Claim, Members};
use crate::caller::{Caller, Claims, Proven};

fn ada(by: Proven, issuer: Option<&str>) -> Caller {
    let claims = issuer.map(|issuer| ("iss".into(), Claim::Text(issuer.into())));
    Caller {
        workload: "w".into(),
        by,
        user: Some("ada".into()),
        claims: Claims::new(Members::new(claims.into_iter().collect())),
        ..Caller::default()
    }
}

#[test]
fn a_name_is_somebody_else_where_another_source_proves_it_or_nothing_does() {
    let workload: Arc<str> = "w".into();
    let of = |caller: &Caller| Principal::of(&workload, Some(caller), None);
    let said = |caller: Option<&Caller>| Principal::of(&workload, caller, Some("ada"));
    let header = Caller {
        user: None,
        ..ada(Proven::Header, None)
    };
    let recorded = Caller {
        is_user_said: true,
        ..ada(Proven::Header, None)
    };
    let all = [
        of(&ada(Proven::Key, None)),
        of(&ada(Proven::Token, Some("https://one"))),
        of(&ada(Proven::Token, Some("https://two"))),
        of(&ada(Proven::Token, None)),
        of(&ada(Proven::Header, None)),
        said(Some(&header)),
        of(&header),
    ];
    for (at, one) in all.iter().enumerate() {
        for other in &all[..at] {
            assert_ne!(one, other);
        }
    }
    // What a call says is the same before it is recorded and after.
    assert_eq!(said(Some(&header)), of(&recorded));
    assert_eq!(said(None), of(&recorded));
    // What else a token says makes nobody else.
    let tagged = Caller {
        tags: [("team".into(), "x".into())].into(),
        ..ada(Proven::Token, Some("https://one"))
    };
    assert_eq!(of(&tagged), all[1]);
}
