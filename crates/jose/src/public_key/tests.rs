//! Keys that cannot be used, as numbers.

use super::{Curve, Material};
use crate::unusable::Unusable;

fn rsa(n: &[u8], e: &[u8]) -> Result<(), Unusable> {
    Material::rsa(n, e).map(|_| ())
}

/// An odd number with this many bits.
fn modulus(bits: usize) -> Vec<u8> {
    let mut n = vec![0xff; bits.div_ceil(8)];
    if !bits.is_multiple_of(8) {
        n[0] = (1 << (bits % 8)) - 1;
    }
    n
}

#[test]
fn an_rsa_modulus_has_2048_to_4096_bits() {
    for bits in [2048, 2049, 2055, 2056, 3072, 4095, 4096] {
        assert_eq!(rsa(&modulus(bits), &[1, 0, 1]), Ok(()), "{bits}");
        let zeros = [vec![0; 3], modulus(bits)].concat();
        assert_eq!(rsa(&zeros, &[0, 1, 0, 1]), Ok(()), "{bits}");
    }
    for bits in [0, 1, 512, 1024, 2040, 2047, 4097, 8192, 16_384] {
        let expected = Err(Unusable::RsaSize { bits });
        assert_eq!(rsa(&modulus(bits), &[1, 0, 1]), expected);
    }
    assert_eq!(
        rsa(&[0; 256], &[1, 0, 1]),
        Err(Unusable::RsaSize { bits: 0 })
    );
    let mut even = modulus(2048);
    even[255] = 0xfe;
    assert_eq!(rsa(&even, &[1, 0, 1]), Err(Unusable::RsaModulus));
}

#[test]
fn an_rsa_exponent_is_odd_and_neither_tiny_nor_huge() {
    let rows: [(&[u8], bool); 14] = [
        (&[1, 0, 1], true),
        (&[1, 0, 3], true),
        (&[1, 0xff, 0xff, 0xff, 0xff], true),
        (&[0, 0, 0, 0, 0, 0, 1, 0, 1], true),
        (&[], false),
        (&[0], false),
        (&[1], false),
        (&[2], false),
        (&[3], false),
        (&[17], false),
        (&[0xff, 0xff], false),
        (&[1, 0, 2], false),
        (&[2, 0, 0, 0, 1], false),
        // 2^64 and 65537: no carry may hide what is in front.
        (&[1, 0, 0, 0, 0, 0, 1, 0, 1], false),
    ];
    for (e, is_good) in rows {
        let expected = if is_good {
            Ok(())
        } else {
            Err(Unusable::RsaExponent)
        };
        assert_eq!(rsa(&modulus(2048), e), expected, "{e:?}");
    }
}

/// The product of two primes of the form `k * M + (65537^a mod M)`, M the product of the first 126 primes: what the
/// library made for 2048 bits.
const WEAK: &str = "\
    ce67bc4e03328f737286cb394ebbf3219febb5a7cf3a3bf485c1102332cca13abcf5c0e03f3ea66eef143bf3a095e411 \
    007158b2a926de339b2ef47178f55c6c9aa21fbb4dadf9b5c6b1c7c7614177e0f28a23c65deb4fca3bd2126a22086bab \
    b72bb04a57c78711372d0479ef6e5486960d5a73755032df887aa412658a81d702839688e70eaacc8b02f61c1ef15947 \
    69d46535ae5743c2d227a0c9efe8f4e7cea4d7a6e37d06c6d8a6200061373d71ed33dd64b423d4f0e474e96e03e52c40 \
    4721e68d8e7bf9686378003f4d055c1f85360af0ee13159305c0a9993a562359cb4ddfdb724231d68f4d8e2bf0daddcc \
    70f3008d380e8fde87e278cd24ba0f8d";

#[test]
fn a_modulus_of_primes_that_can_be_guessed_is_no_key() {
    let digits: String = WEAK.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let weak: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    assert_eq!(weak.len(), 256);
    assert_eq!(rsa(&weak, &[1, 0, 1]), Err(Unusable::RsaPrimes));
    // One bit elsewhere, and it is a number like any other.
    for at in [1, 8, 100, 255] {
        let mut other = weak.clone();
        other[at] ^= 2;
        assert_eq!(rsa(&other, &[1, 0, 1]), Ok(()), "{at}");
    }
}

#[test]
fn a_point_is_on_its_curve_and_written_in_full() {
    let keys = [
        (Curve::P256, crate::fixture::key!("p256.public").as_slice()),
        (Curve::P384, crate::fixture::key!("p384.public")),
        (Curve::P521, crate::fixture::key!("p521.public")),
    ];
    for (curve, pem) in keys {
        let der = crate::pem::block(pem).unwrap().der;
        let length = 1 + 2 * curve.coordinate_bytes();
        let good = &der[der.len() - length..];
        let found = |point: &[u8]| Material::point(curve, point).map(|_| ());
        assert_eq!(found(good), Ok(()));
        for at in 0..length {
            for bit in [1, 0x80] {
                let mut off = good.to_vec();
                off[at] ^= bit;
                assert_eq!(found(&off), Err(Unusable::Point), "{curve:?} {at}");
            }
        }
        let compressed = [&[2 + good[length - 1] % 2], &good[1..length / 2 + 1]].concat();
        let beyond = [&[4], vec![0xff; length - 1].as_slice()].concat();
        let zero = [&[4], vec![0; length - 1].as_slice()].concat();
        let raw = &good[1..];
        for point in [
            &compressed,
            &beyond,
            &zero,
            &vec![0; length],
            raw,
            &[0],
            &[],
        ] {
            assert_eq!(found(point), Err(Unusable::Point), "{curve:?} {point:?}");
        }
    }
}

#[test]
fn a_point_of_small_order_is_no_key() {
    use ring::signature::{ED25519, UnparsedPublicKey};
    // What makes them dangerous: zeros, and a point that stands for zero, sign many messages.
    let forged = [&[1], [0; 63].as_slice()].concat();
    let mut one = [0; 32];
    one[0] = 1;
    let identity = UnparsedPublicKey::new(&ED25519, one);
    assert!(identity.verify(b"anything", &forged).is_ok());
    let mut points = vec![[0; 32], one];
    // -1, and all that is not less than the prime 2^255 - 19.
    for last in 0xec..=0xff {
        let mut point = [0xff; 32];
        (point[0], point[31]) = (last, 0x7f);
        points.push(point);
    }
    for eighth in [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ] {
        let byte = |at: usize| u8::from_str_radix(&eighth[2 * at..2 * at + 2], 16).unwrap();
        points.push(std::array::from_fn(byte));
    }
    for mut point in points {
        for _ in 0..2 {
            let found = Material::ed25519(&point).map(|_| ());
            assert_eq!(found, Err(Unusable::Point), "{point:02x?}");
            point[31] ^= 0x80;
        }
    }
    let mut two = [0; 32];
    two[0] = 2;
    assert!(Material::ed25519(&two).is_ok());
    for length in [0, 31, 33] {
        assert!(Material::ed25519(&vec![2; length]).is_err());
    }
}
