//! The addresses of the public Internet.
//!
//! The ranges are those of the IANA registries for special-purpose addresses (RFC 6890 and what was
//! added since), and the few public-looking ones at which clouds answer about the machine that
//! asks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks by first address and length of the prefix, with what they are. The first that fits
/// names it.
const SPECIAL_V4_NETWORKS: &[(u32, u8, &str)] = &[
    (v4_bits(0, 0, 0, 0), 8, "an address of this host"),
    (v4_bits(10, 0, 0, 0), 8, "a private address"),
    (v4_bits(100, 64, 0, 0), 10, "an address of a provider's inside"),
    (v4_bits(127, 0, 0, 0), 8, "a loopback address"),
    // Clouds answer about the machine at 169.254.169.254 and its neighbours.
    (v4_bits(169, 254, 0, 0), 16, "a link-local address"),
    (v4_bits(172, 16, 0, 0), 12, "a private address"),
    (v4_bits(192, 0, 0, 0), 24, "an address for protocols"),
    (v4_bits(192, 0, 2, 0), 24, "an address for documentation"),
    (v4_bits(192, 88, 99, 0), 24, "a relay's address"),
    (v4_bits(192, 168, 0, 0), 16, "a private address"),
    (v4_bits(198, 18, 0, 0), 15, "an address for measuring"),
    (v4_bits(198, 51, 100, 0), 24, "an address for documentation"),
    (v4_bits(203, 0, 113, 0), 24, "an address for documentation"),
    (v4_bits(224, 0, 0, 0), 4, "a multicast address"),
    (v4_bits(240, 0, 0, 0), 4, "a reserved address"),
    // Azure's, which answers about the machine.
    (v4_bits(168, 63, 129, 16), 32, "a cloud's own address"),
];

/// Of what IPv6 has, only this is given out to networks; everything else is special or free.
const GLOBAL_V6_PREFIX: (u16, u8) = (0x2000, 3);

/// The special ranges within [`GLOBAL_V6_PREFIX`].
const SPECIAL_V6_RANGES: &[([u16; 2], u8, &str)] = &[
    // Teredo, ORCHID, measuring and others.
    ([0x2001, 0x0000], 23, "an address for protocols"),
    ([0x2001, 0x0db8], 32, "an address for documentation"),
    // 6to4: an IPv4 address is in it, of any kind.
    ([0x2002, 0x0000], 16, "an address with another one in it"),
    ([0x3fff, 0x0000], 20, "an address for documentation"),
];

const fn v4_bits(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

/// Returns the reason against connecting to an address; `None` for the public Internet's.
pub(super) fn reason_to_refuse(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let within = |(network, length, _): &&(u32, u8, &str)| (bits ^ network) >> (32 - u32::from(*length)) == 0;
    SPECIAL_V4_NETWORKS.iter().find(within).map(|(_, _, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [a, b, ..] = address.segments();
    let bits = u32::from(a) << 16 | u32::from(b);
    let within = |network: [u16; 2], length: u8| {
        let [x, y] = network;
        (bits ^ (u32::from(x) << 16 | u32::from(y))) >> (32 - u32::from(length)) == 0
    };
    if !within([GLOBAL_V6_PREFIX.0, 0], GLOBAL_V6_PREFIX.1) {
        return Some(match a {
            0 if address.is_loopback() => "a loopback address",
            // Mapped, compatible, and the prefix of NAT64.
            0 | 0x64 => "an address with another one in it",
            0xfc00..=0xfdff => "a private address",
            0xfe80..=0xfebf => "a link-local address",
            0xff00.. => "a multicast address",
            _ => "a reserved address",
        });
    }
    SPECIAL_V6_RANGES.iter().find(|(network, length, _)| within(*network, *length)).map(|(_, _, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "168.63.129.15",
            "2606:4700::1111",
            "2001:200::1",
            "2a00:1450::1",
            "3ffe::1",
        ] {
            assert_eq!(reason_to_refuse(public.parse().unwrap()), None, "{public}");
        }
        for closed in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "::7f00:1",
            "64:ff9b::1.1.1.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2001:10::1",
            "2002:7f00:1::1",
            "2002:101:101::1",
            "3fff:fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(reason_to_refuse(closed.parse().unwrap()).is_some(), "{closed}");
        }
    }

    proptest! {
        #[test]
        fn what_the_standard_library_knows_as_special_is_special(bits: u32, high: u64, low: u64) {
            let v4 = Ipv4Addr::from_bits(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified()
            {
                prop_assert!(reason_to_refuse(IpAddr::V4(v4)).is_some());
            }
            prop_assert!(reason_to_refuse(IpAddr::V6(v4.to_ipv6_mapped())).is_some());
            prop_assert!(reason_to_refuse(IpAddr::V6(v4.to_ipv6_compatible())).is_some());
            let v6 = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
            if v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unique_local() || v6.is_multicast() {
                prop_assert!(reason_to_refuse(IpAddr::V6(v6)).is_some());
            }
        }
    }
}
