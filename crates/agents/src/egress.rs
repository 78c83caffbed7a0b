//! Which networks a request may go to. The address that is connected to is checked, after the DNS lookup; an IPv6
//! address that embeds an IPv4 address is checked by the latter.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The networks a request may go to. Reserved, link-local and metadata addresses are always forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// The internet.
    Public,
    /// The internet and this machine.
    PublicAndLoopback,
    /// The internet, this machine and private networks.
    Unrestricted,
    /// Only this machine.
    Loopback,
    /// This machine and private networks.
    Internal,
}

/// An address that a request may not go to; nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {}", .class.description())]
pub(crate) struct ForbiddenAddress {
    address: IpAddr,
    class: AddressClass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressClass {
    Internet,
    Loopback,
    Private,
    /// Link-local, or another address at which cloud providers hand out the credentials of a machine.
    Metadata,
    Reserved,
}

impl Egress {
    pub(crate) fn check(self, address: IpAddr) -> Result<(), ForbiddenAddress> {
        let class = class_of(address);
        let is_allowed = match (class, self) {
            (
                AddressClass::Internet,
                Egress::Public | Egress::PublicAndLoopback | Egress::Unrestricted,
            ) => true,
            (AddressClass::Loopback, Egress::Public) => false,
            (AddressClass::Loopback, _) => true,
            (AddressClass::Private, Egress::Unrestricted | Egress::Internal) => true,
            (AddressClass::Internet | AddressClass::Private, _) => false,
            (AddressClass::Metadata | AddressClass::Reserved, _) => false,
        };
        if is_allowed { Ok(()) } else { Err(ForbiddenAddress { address, class }) }
    }

    /// Checks the addresses of one name. One with allowed and forbidden addresses is suspicious, so one forbidden
    /// address fails it.
    pub(crate) fn check_all(self, addresses: &[IpAddr]) -> Result<(), ForbiddenAddress> {
        addresses.iter().try_for_each(|address| self.check(*address))
    }
}

impl Egress {
    /// The networks that an unencrypted secret may go to; `None` if it may not be sent at all.
    pub(crate) const fn for_plaintext_secret(self) -> Option<Egress> {
        match self {
            Egress::Public => None,
            Egress::PublicAndLoopback | Egress::Loopback => Some(Egress::Loopback),
            Egress::Unrestricted | Egress::Internal => Some(Egress::Internal),
        }
    }
}

impl AddressClass {
    const fn description(self) -> &'static str {
        match self {
            // Only requests with an unencrypted secret are kept from there.
            AddressClass::Internet => {
                "an internet address, where the secret would go unencrypted: use an https url"
            }
            AddressClass::Loopback => "an address of this machine",
            AddressClass::Private => "an address of a private network",
            AddressClass::Metadata => "a link-local or metadata address",
            AddressClass::Reserved => "a reserved address",
        }
    }
}

fn class_of(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

fn class_of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [192, 168, ..] => AddressClass::Private,
        [172, 16..=31, ..] => AddressClass::Private,
        // Link-local, and the metadata servers of Alibaba Cloud and Azure.
        [169, 254, ..] | [100, 100, 100, 200] | [168, 63, 129, 16] => AddressClass::Metadata,
        // Carrier-grade NAT.
        [100, 64..=127, ..] => AddressClass::Private,
        [0, ..] | [192, 0, 0, _] | [224..=255, ..] => AddressClass::Reserved,
        // Benchmarks and documentation.
        [198, 18..=19, ..] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressClass::Reserved
        }
        _ => AddressClass::Internet,
    }
}

fn class_of_v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // IPv4-mapped, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] => class_of_v4(embedded_v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => class_of_v4(embedded_v4(high, low)),
        [0x2002, high, low, ..] => class_of_v4(embedded_v4(high, low)),
        // Link-local, and the metadata servers of AWS and Google Cloud.
        [0xfe80..=0xfebf, ..] => AddressClass::Metadata,
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::Metadata
        }
        [0x64, 0xff9b, 1, ..] | [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => {
            AddressClass::Private
        }
        // Teredo, which obfuscates its destination, and documentation.
        [0x2001, 0 | 0xdb8, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Internet,
        _ => AddressClass::Reserved,
    }
}

fn embedded_v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_classified_by_their_destination() {
        let table = [
            (
                AddressClass::Loopback,
                "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::",
            ),
            (
                AddressClass::Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 100.64.0.0 \
                 100.127.255.255 100.100.100.199 100.100.100.201 64:ff9b:1::1 fc00::1 fdff::1 \
                 fd00:ec2::253 fec0::1",
            ),
            (
                AddressClass::Metadata,
                "169.254.0.0 169.254.169.254 169.254.255.255 ::ffff:169.254.169.254 \
                 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 100.100.100.200 ::ffff:100.100.100.200 \
                 168.63.129.16 fe80::1 fe80::a9fe:a9fe febf::1 fd00:ec2::254 fd20:ce::254",
            ),
            (
                AddressClass::Reserved,
                "0.0.0.0 0.1.2.3 :: 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 192.0.0.1 \
                 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 ff02::1 2001::1 \
                 2001:db8::1 100::1 ::127.0.0.1 ::ffff:0.0.0.0 4000::1",
            ),
            (
                AddressClass::Internet,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
                 128.0.0.0 168.63.129.15 169.253.0.1 169.255.0.1 172.15.255.255 172.32.0.0 192.167.0.1 \
                 223.255.255.255 2606:4700::1 2a00::1 ::ffff:1.1.1.1 2001:200::1",
            ),
        ];
        for (class, addresses) in table {
            for address in addresses.split_whitespace() {
                assert_eq!(class_of(address.parse().unwrap()), class, "{address}");
            }
        }
    }

    #[test]
    fn each_egress_allows_its_networks_only() {
        for (address, expected) in [
            ("1.1.1.1", [true, true, true, false, false]),
            ("127.0.0.1", [false, true, true, true, true]),
            ("10.0.0.1", [false, false, true, false, true]),
            ("169.254.169.254", [false; 5]),
            ("fe80::1", [false; 5]),
            ("0.0.0.0", [false; 5]),
            ("255.255.255.255", [false; 5]),
        ] {
            let address = address.parse().unwrap();
            let all = [
                Egress::Public,
                Egress::PublicAndLoopback,
                Egress::Unrestricted,
                Egress::Loopback,
                Egress::Internal,
            ];
            let found = all.map(|egress| egress.check(address).is_ok());
            assert_eq!(found, expected, "{address}");
        }
    }
}
