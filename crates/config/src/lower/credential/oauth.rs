//! `oauth` and `exchange`: what an OAuth endpoint is asked for, and by whom.

use crate::decode::{At, Field, Place, Written as _};
use crate::host::{ClientProof, ExchangeGrant, MadeKind, SubjectToken, TokenSource};
use crate::lower::identity::address;
use crate::lower::{said, text, texts};
use crate::scalar::{ClientAuth, Text};
use crate::schema::Bearer;
use crate::schema::credential::{Asked, IssuedToken, OAuth, PrivateKey, TokenExchange};
use crate::target::Target;

/// What the caller's token is, unless the document says.
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Who is asked, and by whom.
struct By<'w> {
    token_url: &'w Field<At<Target>>,
    client_id: Option<&'w At<Text>>,
    client_secret: &'w Field<Bearer>,
    private_key: &'w Field<PrivateKey>,
    client_auth: &'w Field<At<ClientAuth>>,
}

impl super::super::Lowering<'_> {
    pub(super) fn oauth(&mut self, written: &OAuth, place: &Place) -> Option<(String, MadeKind)> {
        let by = By {
            token_url: &written.token_url,
            client_id: written.client_id.get(),
            client_secret: &written.client_secret,
            private_key: &written.private_key,
            client_auth: &written.client_auth,
        };
        if written.client_secret.is_absent() && written.private_key.is_absent() {
            let says = "says nothing that proves who the gate is";
            let hint = "write client_secret or private_key";
            self.fault(place, says, hint);
        }
        let source = self.token_source(&by, &written.asked, place)?;
        let account = format!("oauth {} {}", source.url, written.client_id.get()?.value.0);
        Some((account, MadeKind::OAuth(Box::new(source))))
    }

    pub(super) fn exchange(
        &mut self,
        written: &TokenExchange,
        place: &Place,
    ) -> Option<(String, MadeKind)> {
        let by = By {
            token_url: &written.token_url,
            client_id: written.client_id.get(),
            client_secret: &written.client_secret,
            private_key: &written.private_key,
            client_auth: &written.client_auth,
        };
        let is_proven = !written.client_secret.is_absent() || !written.private_key.is_absent();
        if is_proven && written.client_id.is_absent() {
            let says = "says what proves the gate, and not its name";
            self.fault(place, says, "say `client_id`, too");
        }
        let is_jwt = written.grant.value().is_some_and(|is| is.0);
        let types = [&written.subject_token_type, &written.requested_token_type];
        for at in types.into_iter().filter_map(Field::get).filter(|_| is_jwt) {
            let says = "the grant jwt_bearer has no types of tokens";
            self.fault(&at.place, says, "leave it out");
        }
        let grant = if is_jwt {
            ExchangeGrant::JwtBearer
        } else {
            ExchangeGrant::TokenExchange {
                subject_token_type: said(&written.subject_token_type, ACCESS_TOKEN),
                requested_token_type: text(&written.requested_token_type),
            }
        };
        let source = self.token_source(&by, &written.asked, place)?;
        let account = format!("exchange {} {:?}", source.url, source.audiences);
        Some((account, MadeKind::Exchange(Box::new(source), grant)))
    }

    /// A token of another issuer that is asked for.
    pub(super) fn issued_token(
        &mut self,
        written: &IssuedToken,
        place: &Place,
    ) -> Option<SubjectToken> {
        let secret = self.secret_below(&written.client_secret, place, "client_secret");
        let kinds = [!written.issuer.is_absent(), !written.token_url.is_absent()];
        let none = "says nobody who gives it";
        let several = "says twice who gives it";
        let is_one = self.one_of(place, kinds, [none, several], "write issuer or token_url");
        let scope = texts(&written.scope).join(" ");
        let mut source = TokenSource {
            url: String::new(),
            client_id: text(&written.client_id),
            proof: ClientProof::Secret {
                secret: secret??,
                is_posted: written.client_auth.value().is_some_and(|is| is.0),
            },
            scope: (!scope.is_empty()).then_some(scope),
            audiences: texts(&written.audience),
            resources: texts(&written.resource),
            fields: Vec::new(),
        };
        let Some(at) = written.issuer.get() else {
            source.url = self.asked_at(&written.token_url)?;
            return is_one.then(|| SubjectToken::Asked(Box::new(source)));
        };
        // Its document says so to the letter who it is.
        let Ok(target) = Target::read(&at.value.0) else {
            let hint = "write the issuer's address, which begins with https://, or its token_url";
            self.refuse(at, "is no address at which a document could be found", hint);
            return None;
        };
        if !target.tls {
            self.in_clear(&at.place, &target);
        }
        is_one.then(|| SubjectToken::AskedOf(at.value.0.clone(), Box::new(source)))
    }

    fn token_source(&mut self, by: &By<'_>, asked: &Asked, place: &Place) -> Option<TokenSource> {
        let proof = self.client_proof(by, place);
        let mut fields = Vec::new();
        for (name, value) in asked.fields.items() {
            self.own_field(name);
            if let Some(value) = value {
                fields.push((name.value.0.clone(), value.value.0.clone()));
            }
        }
        let scope = texts(&asked.scope).join(" ");
        let url = self.asked_at(by.token_url)?;
        Some(TokenSource {
            url,
            client_id: by.client_id.map(|at| at.value.0.clone()),
            proof: proof?,
            scope: (!scope.is_empty()).then_some(scope),
            audiences: texts(&asked.audience),
            resources: texts(&asked.resource),
            fields,
        })
    }

    /// The address of whoever is asked, which a secret goes to.
    pub(super) fn asked_at(&mut self, written: &Field<At<Target>>) -> Option<String> {
        let at = written.get()?;
        if !at.value.tls {
            self.in_clear(&at.place, &at.value);
        }
        Some(address(&at.value))
    }

    /// A further field must not be one that the gate sets.
    fn own_field(&mut self, name: &At<Text>) {
        const OWN: [&str; 16] = [
            "grant_type",
            "client_id",
            "client_secret",
            "client_assertion",
            "client_assertion_type",
            "assertion",
            "scope",
            "audience",
            "resource",
            "subject_token",
            "subject_token_type",
            "actor_token",
            "actor_token_type",
            "requested_token_type",
            "username",
            "password",
        ];
        if OWN.contains(&name.value.0.as_str()) {
            let hint = "write it under its own name, where it has one here";
            self.refuse(name, "is no further field", hint);
        }
    }

    fn client_proof(&mut self, by: &By<'_>, place: &Place) -> Option<ClientProof> {
        if let (Field::Is(_), Field::Is(_)) = (by.client_secret, by.private_key) {
            let says = "says both a secret and a key";
            let hint = "keep client_secret or private_key";
            self.fault(place, says, hint);
        }
        if let (Some(at), true) = (by.client_auth.get(), by.client_secret.is_absent()) {
            let says = "says how a secret is sent, and no secret";
            self.fault(&at.place, says, "leave it out");
        }
        match (by.client_secret, by.private_key) {
            (Field::Bad, _) | (_, Field::Bad) => None,
            (Field::Is(secret), _) => {
                let secret = self.secret_at(secret, &place.below("client_secret"))?;
                let is_posted = by.client_auth.value().is_some_and(|is| is.0);
                Some(ClientProof::Secret { secret, is_posted })
            }
            (_, Field::Is(key)) => {
                let at = key.file.get()?;
                Some(ClientProof::Key {
                    pem: self.private_key(at)?.1,
                    id: text(&key.id),
                    algorithm: key.algorithm.value().map(|of| of.0),
                })
            }
            (Field::Absent, Field::Absent) => Some(ClientProof::Nothing),
        }
    }
}
