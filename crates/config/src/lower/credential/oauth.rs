//! `oauth` and `exchange`: what an OAuth endpoint is asked for, and by whom.

use crate::decode::{At, Field, MapOf, OneOrMany, Place};
use crate::host::{ClientProof, ExchangeGrant, MadeKind, TokenSource};
use crate::lower::identity::{address, texts};
use crate::scalar::{self, ClientAuth, Text};
use crate::schema::Bearer;
use crate::schema::credential::{OAuth, PrivateKey, TokenExchange};
use crate::target::Target;

/// What the caller's token is, unless the document says.
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The fields that both have.
struct Asked<'w> {
    token_url: &'w Field<At<Target>>,
    client_id: Option<&'w At<Text>>,
    client_secret: &'w Field<Bearer>,
    private_key: &'w Field<PrivateKey>,
    client_auth: &'w Field<At<ClientAuth>>,
    scope: &'w Field<OneOrMany<Text>>,
    audience: &'w Field<OneOrMany<Text>>,
    resource: &'w Field<OneOrMany<Text>>,
    fields: &'w Field<MapOf<Text, At<Text>>>,
}

impl super::super::Lowering<'_> {
    pub(super) fn oauth(&mut self, written: &OAuth, place: &Place) -> Option<(String, MadeKind)> {
        let asked = Asked {
            token_url: &written.token_url,
            client_id: written.client_id.get(),
            client_secret: &written.client_secret,
            private_key: &written.private_key,
            client_auth: &written.client_auth,
            scope: &written.scope,
            audience: &written.audience,
            resource: &written.resource,
            fields: &written.fields,
        };
        if written.client_secret.is_absent() && written.private_key.is_absent() {
            let says = "says nothing that proves who the gate is";
            let hint = "write client_secret or private_key";
            self.findings.fault(place, says, hint);
        }
        let source = self.token_source(&asked, place)?;
        let account = format!("oauth {} {}", source.url, written.client_id.get()?.value.0);
        Some((account, MadeKind::OAuth(Box::new(source))))
    }

    pub(super) fn exchange(
        &mut self,
        written: &TokenExchange,
        place: &Place,
    ) -> Option<(String, MadeKind)> {
        let asked = Asked {
            token_url: &written.token_url,
            client_id: written.client_id.get(),
            client_secret: &written.client_secret,
            private_key: &written.private_key,
            client_auth: &written.client_auth,
            scope: &written.scope,
            audience: &written.audience,
            resource: &written.resource,
            fields: &written.fields,
        };
        let is_proven = !written.client_secret.is_absent() || !written.private_key.is_absent();
        if is_proven && written.client_id.is_absent() {
            let says = "says what proves the gate, and not its name";
            self.findings.fault(place, says, "say `client_id`, too");
        }
        let grant = written.grant.get();
        let is_jwt = grant.is_some_and(|at| at.value == scalar::ExchangeGrant::JwtBearer);
        let types = [&written.subject_token_type, &written.requested_token_type];
        for at in types.into_iter().filter_map(Field::get).filter(|_| is_jwt) {
            let says = "the grant jwt_bearer has no types of tokens";
            self.findings.fault(&at.place, says, "leave it out");
        }
        let text = |field: &Field<At<Text>>| field.get().map(|at| at.value.0.clone());
        let grant = if is_jwt {
            ExchangeGrant::JwtBearer
        } else {
            let kind = text(&written.subject_token_type);
            ExchangeGrant::TokenExchange {
                subject_token_type: kind.unwrap_or_else(|| ACCESS_TOKEN.to_owned()),
                requested_token_type: text(&written.requested_token_type),
            }
        };
        let source = self.token_source(&asked, place)?;
        let account = format!("exchange {} {:?}", source.url, source.audiences);
        Some((account, MadeKind::Exchange(Box::new(source), grant)))
    }

    fn token_source(&mut self, asked: &Asked<'_>, place: &Place) -> Option<TokenSource> {
        let proof = self.client_proof(asked, place);
        let mut fields = Vec::new();
        for (name, value) in asked.fields.get().map_or(&[][..], |fields| &fields.0) {
            self.own_field(name);
            if let Some(value) = value {
                fields.push((name.value.0.clone(), value.value.0.clone()));
            }
        }
        let scope = texts(asked.scope).join(" ");
        let url = self.asked_at(asked.token_url)?;
        Some(TokenSource {
            url,
            client_id: asked.client_id.map(|at| at.value.0.clone()),
            proof: proof?,
            scope: (!scope.is_empty()).then_some(scope),
            audiences: texts(asked.audience),
            resources: texts(asked.resource),
            fields,
        })
    }

    /// The address of whoever is asked, which a secret goes to.
    pub(super) fn asked_at(&mut self, written: &Field<At<Target>>) -> Option<String> {
        let at = written.get()?;
        if !at.value.tls {
            self.in_clear(at);
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
            let says = format!("{} is no further field", name.shown);
            let hint = "write it under its own name, where it has one here";
            self.findings.fault(&name.place, says, hint);
        }
    }

    fn client_proof(&mut self, asked: &Asked<'_>, place: &Place) -> Option<ClientProof> {
        if let (Field::Is(_), Field::Is(_)) = (asked.client_secret, asked.private_key) {
            let says = "says both a secret and a key";
            let hint = "keep client_secret or private_key";
            self.findings.fault(place, says, hint);
        }
        if let (Some(at), true) = (asked.client_auth.get(), asked.client_secret.is_absent()) {
            let says = "says how a secret is sent, and no secret";
            self.findings.fault(&at.place, says, "leave it out");
        }
        match (asked.client_secret, asked.private_key) {
            (Field::Bad, _) | (_, Field::Bad) => None,
            (Field::Is(secret), _) => {
                let secret = self.secret_of(secret, place, "client_secret")?;
                let how = asked.client_auth.get();
                let is_posted = how.is_some_and(|at| at.value == ClientAuth::Post);
                Some(ClientProof::Secret { secret, is_posted })
            }
            (_, Field::Is(key)) => {
                let at = key.file.get()?;
                let algorithm = key.algorithm.get();
                Some(ClientProof::Key {
                    pem: self.private_pem(at)?,
                    id: key.id.get().map(|at| at.value.0.clone()),
                    algorithm: algorithm.map(|at| at.value.0),
                })
            }
            (Field::Absent, Field::Absent) => Some(ClientProof::Nothing),
        }
    }
}
