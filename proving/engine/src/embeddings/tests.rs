//! Vectors and their counts.

use super::*;

#[test]
fn vectors_have_length_one_and_follow_from_the_text() {
    let v = vector(7, 384);
    let norm: f32 = v.iter().map(|x| x * x).sum();
    assert!((norm - 1.0).abs() < 1e-4, "{norm}");
    assert_eq!(v, vector(7, 384));
    assert_ne!(v, vector(8, 384));
}

#[test]
fn base64_pads_as_the_standard_says() {
    assert_eq!(base64(&[1.0]), "AACAPw==");
    assert_eq!(base64(&[1.0, -2.5]), "AACAPwAAIMA=");
    assert_eq!(base64(&[1.0, -2.5, 0.1]), "AACAPwAAIMDNzMw9");
}
