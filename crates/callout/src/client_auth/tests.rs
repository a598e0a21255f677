//! The bytes of each kind of client credential.

use policy::secret::Secret;

use super::*;

fn secret(text: &str) -> SecretSource {
    SecretSource::fixed(Secret::new(text.as_bytes().to_vec()))
}

fn applied(auth: &ClientAuth) -> (String, String) {
    let (mut form, mut headers) = (Form::new(), HeaderMap::new());
    form.add("a", b"b");
    auth.apply(&mut form, &mut headers).expect("a credential");
    let body = form.finish(&mut headers).to_vec();
    let header = headers.get(AUTHORIZATION);
    let header = header.map(|value| value.to_str().expect("text").to_owned());
    assert!(
        headers
            .get(AUTHORIZATION)
            .is_none_or(http::HeaderValue::is_sensitive)
    );
    (
        header.unwrap_or_default(),
        String::from_utf8(body).expect("text"),
    )
}

#[test]
fn each_way_stands_where_its_rfc_puts_it() {
    let id = || "a b".to_owned();
    let assertion = "a=b&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer\
                     &client_assertion=x.y.z";
    let with_id = assertion.replace("a=b&", "a=b&client_id=a+b&");
    let (basic, post) = (secret("p:w+ä"), secret("p:w+ä"));
    let jwt = || secret("x.y.z");
    let table = [
        // base64("a+b:p%3Aw%2B%C3%A4")
        (
            ClientAuth::Basic {
                id: id(),
                secret: basic,
            },
            ("Basic YStiOnAlM0F3JTJCJUMzJUE0", "a=b"),
        ),
        (
            ClientAuth::Post {
                id: id(),
                secret: post,
            },
            ("", "a=b&client_id=a+b&client_secret=p%3Aw%2B%C3%A4"),
        ),
        (
            ClientAuth::Assertion {
                id: None,
                assertion: jwt(),
            },
            ("", assertion),
        ),
        (
            ClientAuth::Assertion {
                id: Some(id()),
                assertion: jwt(),
            },
            ("", &with_id),
        ),
        (ClientAuth::Nothing { id: None }, ("", "a=b")),
        (
            ClientAuth::Nothing { id: Some(id()) },
            ("", "a=b&client_id=a+b"),
        ),
    ];
    for (auth, (header, body)) in table {
        assert_eq!(
            applied(&auth),
            (header.to_owned(), body.to_owned()),
            "{auth:?}"
        );
    }
}

#[test]
fn a_credential_that_is_not_there_or_fits_nowhere_is_told_without_it() {
    let table = [
        SecretSource::with(|| None),
        secret(""),
        secret("hidden\r\nx: y"),
    ];
    for token in table {
        let told = bearer(&token).expect_err("no credential").to_string();
        assert!(!told.contains("hidden"), "{told}");
        assert!(!format!("{token:?}").contains("hidden"));
    }
    let basic = ClientAuth::Basic {
        id: String::new(),
        secret: secret(""),
    };
    let told = basic.apply(&mut Form::new(), &mut HeaderMap::new());
    assert!(told.is_err());
}
