//! Keys of a session at AWS: of a role that a token of another issuer may take, or of the machine's or container's own.
//!
//! Invariant: an answer is read strictly: each of its four parts once. The machine is asked by version 2 of its metadata
//! service alone, which a request that somebody else had the gate send could not use.
//! Not here: signing with the keys (`sigv4`).

use std::time::Duration;

use http::Method;
use http::header::HeaderMap;
use policy::secret::Secret;
use zeroize::Zeroizing;

use super::Issued;
use super::federation::Federation;
use super::grant::ANSWER_BYTES_MAX;
use super::metadata::{MetadataMethod, MetadataRequest};
use super::moment::until;
use crate::client::{Call, Client, Reply};
use crate::fault::Fault;
use crate::form::Form;
use crate::json;
use crate::secret_source::SecretSource;
use crate::url::Url;

/// Keys of a session.
#[derive(Debug, Clone)]
pub struct SessionKeys {
    /// Names the key.
    pub access_key_id: String,
    /// Signs.
    pub secret_access_key: Secret,
    /// Sent with each request.
    pub session_token: Secret,
}

/// How keys are asked for.
#[derive(Debug, Clone)]
pub enum KeysRequest {
    /// At the token service, with a token of another issuer.
    WebIdentity(WebIdentity),
    /// The same, with a token that is asked for first.
    Federated(Box<Federation>, WebIdentity),
    /// At the machine's metadata service, which is here, with the path `/`.
    Instance(Url),
    /// At the container's agent (ECS task roles, EKS Pod Identity).
    Container {
        /// The agent.
        url: Url,
        /// What proves the container to it, where it asks for that.
        token: Option<SecretSource>,
    },
}

/// A role, and the token that lets the gate take it (`AssumeRoleWithWebIdentity`).
#[derive(Debug, Clone)]
pub struct WebIdentity {
    /// The token service.
    pub url: Url,
    /// The role.
    pub role_arn: String,
    /// What the session is called in the account's logs.
    pub session_name: String,
    /// The token.
    pub token: SecretSource,
}

impl KeysRequest {
    pub(super) async fn fetch(&self, client: &Client) -> Result<Issued<SessionKeys>, Fault> {
        match self {
            Self::WebIdentity(request) => request.fetch(client).await,
            Self::Federated(federation, request) => {
                federation.fetch(client).await?;
                request.fetch(client).await
            }
            Self::Instance(url) => of_instance(url, client).await,
            Self::Container { url, token } => {
                let proof = token.iter();
                let proof = proof.map(|token| ("authorization".to_owned(), token.clone()));
                let request = MetadataRequest {
                    method: MetadataMethod::Get,
                    url: url.clone(),
                    headers: proof.collect(),
                };
                members_as_keys(&request.body(client).await?)
            }
        }
    }
}

impl WebIdentity {
    async fn fetch(&self, client: &Client) -> Result<Issued<SessionKeys>, Fault> {
        let mut form = Form::new();
        form.add("Action", b"AssumeRoleWithWebIdentity");
        form.add("Version", b"2011-06-15");
        form.add("RoleArn", self.role_arn.as_bytes());
        form.add("RoleSessionName", self.session_name.as_bytes());
        form.add("WebIdentityToken", self.token.give()?.expose());
        let mut headers = HeaderMap::new();
        let call = Call {
            body: form.finish(&mut headers),
            headers,
            ..Call::new(Method::POST, &self.url, ANSWER_BYTES_MAX)
        };
        let reply = client.send(&call).await?;
        if !reply.status.is_success() {
            return Err(refusal(&reply));
        }
        let body = reply.good(&["text/xml", "application/xml"], "it is not XML")?;
        let body = std::str::from_utf8(body).map_err(|_| Fault::Garbage("it is not UTF-8 text"))?;
        if !is_whole(body) {
            return Err(Fault::Garbage("it is not XML, or is cut off"));
        }
        let part = |name| element(body, name);
        keys(
            part("AccessKeyId"),
            part("SecretAccessKey"),
            part("SessionToken"),
            part("Expiration"),
        )
    }
}

/// Keys of the machine's own role, in three steps.
async fn of_instance(at: &Url, client: &Client) -> Result<Issued<SessionKeys>, Fault> {
    const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
    let fixed = |text: &str| SecretSource::fixed(Secret::new(text.as_bytes().to_vec()));
    let ask = |method, target: &str, header: (&str, SecretSource)| -> Result<_, Fault> {
        let url = at.at(target);
        let url = url.map_err(|_| Fault::Garbage("its role has no name of a role"))?;
        let headers = vec![(header.0.to_owned(), header.1)];
        Ok(MetadataRequest {
            method,
            url,
            headers,
        })
    };
    let life = ("x-aws-ec2-metadata-token-ttl-seconds", fixed("300"));
    let session = ask(MetadataMethod::Put, "/latest/api/token", life)?;
    let session = SecretSource::fixed(session.body(client).await?);
    let shown = || ("x-aws-ec2-metadata-token", session.clone());
    let roles = ask(MetadataMethod::Get, ROLES, shown())?
        .body(client)
        .await?;
    let role = std::str::from_utf8(roles.expose()).unwrap_or_default();
    let role = role.lines().next().unwrap_or_default().trim();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"+=,.@-_".contains(&b);
    if role.is_empty() || !role.bytes().all(is_plain) {
        return Err(Fault::Garbage("it names no role of this machine"));
    }
    let of_role = ask(MetadataMethod::Get, &format!("{ROLES}{role}"), shown())?;
    members_as_keys(&of_role.body(client).await?)
}

/// Keys of an answer in JSON.
fn members_as_keys(body: &Secret) -> Result<Issued<SessionKeys>, Fault> {
    let members = json::object(body.expose())?;
    let part = |name| json::text(&members, name, "a part of its keys is no text");
    keys(
        part("AccessKeyId")?,
        part("SecretAccessKey")?,
        part("Token")?,
        part("Expiration")?,
    )
}

/// Keys of the parts of an answer.
fn keys(
    id: Option<&str>,
    secret: Option<&str>,
    token: Option<&str>,
    end: Option<&str>,
) -> Result<Issued<SessionKeys>, Fault> {
    let (Some(id), Some(secret), Some(token), Some(end)) = (id, secret, token, end) else {
        return Err(Fault::Garbage(
            "it does not hold each part of the keys once",
        ));
    };
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    if ![id, secret, token].into_iter().all(is_plain) {
        return Err(Fault::Garbage("a part of its keys fits no header"));
    }
    let life = until(end)?;
    if life == Duration::ZERO {
        return Err(Fault::Garbage("its keys have ended already"));
    }
    let keys = SessionKeys {
        access_key_id: id.to_owned(),
        secret_access_key: Secret::new(secret.into()),
        session_token: Secret::new(token.into()),
    };
    Ok(Issued::new(keys, life))
}

/// Whether the element that begins a document ends it, too.
fn is_whole(xml: &str) -> bool {
    let xml = xml.trim();
    let after_declaration = xml
        .strip_prefix("<?")
        .and_then(|rest| rest.split_once("?>"));
    let root = after_declaration.map_or(xml, |(_, rest)| rest.trim_start());
    let root = root.strip_prefix('<').unwrap_or_default();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let name = root.split(|c| !is_of_name(c)).next().unwrap_or_default();
    !name.is_empty() && xml.ends_with(&format!("</{name}>"))
}

/// What stands between the tags of this name, which stand there once, without markup of its own.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (inside, after) = rest.split_once(&format!("</{name}>"))?;
    let is_single = !after.contains(&format!("<{name}>"));
    (is_single && !inside.contains(['<', '&'])).then(|| inside.trim())
}

/// A refusal by its status and AWS's code for it.
fn refusal(reply: &Reply) -> Fault {
    let body = Zeroizing::new(String::from_utf8_lossy(&reply.body).into_owned());
    let is_plain = |code: &&str| {
        (1..=64).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphabetic())
    };
    Fault::Status {
        status: reply.status.as_u16(),
        code: element(&body, "Code").filter(is_plain).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests;
