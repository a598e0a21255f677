//! The bytes of a form.

use super::*;

#[test]
fn a_form_is_written_as_it_is_read() {
    let mut form = Form::new();
    form.add("token", b"a b+c/=&%");
    form.add("\u{fc}", b"\x00\xff*-._~");
    let mut headers = HeaderMap::new();
    let body = form.finish(&mut headers);
    let expected: &[u8] = b"token=a+b%2Bc%2F%3D%26%25&%C3%BC=%00%FF*-._%7E";
    assert_eq!(&body[..], expected);
    assert_eq!(headers[CONTENT_TYPE], "application/x-www-form-urlencoded");
}
