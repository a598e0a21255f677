//! Each kind of address, by itself and where link-local is allowed.

use super::*;

#[test]
fn metadata_services_of_clouds_are_not_asked_wherever_they_stand() {
    for address in [
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd20:ce::254",
        "fd00:ec2::254",
    ] {
        let address: std::net::IpAddr = address.parse().expect("an address");
        assert!(!super::is_allowed(address, false), "{address}");
    }
}

#[test]
fn which_addresses_are_let_through() {
    // Address, by itself, where link-local is allowed.
    let table = [
        ("127.0.0.1", true, true),
        ("::1", true, true),
        ("10.1.2.3", true, true),
        ("192.168.0.1", true, true),
        ("fd12::1", true, true),
        ("203.0.113.9", true, true),
        ("2001:db8::1", true, true),
        ("::ffff:127.0.0.1", true, true),
        ("169.254.169.254", false, true),
        ("169.254.0.1", false, true),
        ("169.253.255.255", true, true),
        ("169.255.0.0", true, true),
        ("::ffff:169.254.169.254", false, true),
        ("::169.254.169.254", false, true),
        ("64:ff9b::169.254.169.254", false, true),
        ("2002:a9fe:a9fe::1", false, true),
        ("fe80::1", false, true),
        ("febf::1", false, true),
        ("fec0::1", true, true),
        ("fd00:ec2::254", false, true),
        ("fd00:ec2::253", true, true),
        ("0.0.0.0", false, false),
        ("0.1.2.3", false, false),
        ("::", false, false),
        ("::ffff:0.0.0.0", false, false),
        ("224.0.0.1", false, false),
        ("::ffff:239.1.1.1", false, false),
        ("255.255.255.255", false, false),
        ("ff02::1", false, false),
    ];
    for (text, alone, near) in table {
        let address = text.parse().expect(text);
        let found = (is_allowed(address, false), is_allowed(address, true));
        assert_eq!(found, (alone, near), "{text}");
    }
}
