//! Which addresses a request may go to. An address is judged as it is used, after its name was looked up,
//! and by what it leads to: one that stands for another is judged by that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only to addresses of the internet.
    Public,
    /// To this machine as well.
    Local,
    /// To private networks as well.
    Private,
    /// Only to this machine.
    Machine,
    /// Only to this machine and to private networks.
    Near,
}

/// An address that a request may not go to. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {}", .place.words())]
pub(crate) struct Forbidden {
    address: IpAddr,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Internet,
    Machine,
    Private,
    Nowhere,
}

impl Reach {
    pub(crate) fn check(self, address: IpAddr) -> Result<(), Forbidden> {
        let place = place_of(address);
        let may = match (place, self) {
            (Place::Internet, Reach::Public | Reach::Local | Reach::Private) => true,
            (Place::Machine, Reach::Public) => false,
            (Place::Machine, _) => true,
            (Place::Private, Reach::Private | Reach::Near) => true,
            (Place::Internet | Place::Private | Place::Nowhere, _) => false,
        };
        if may { Ok(()) } else { Err(Forbidden { address, place }) }
    }
}

impl Reach {
    /// How far a secret may go in the clear: not where strangers listen.
    pub(crate) const fn in_the_clear(self) -> Option<Reach> {
        match self {
            Reach::Public => None,
            Reach::Local | Reach::Machine => Some(Reach::Machine),
            Reach::Private | Reach::Near => Some(Reach::Near),
        }
    }
}

impl Place {
    const fn words(self) -> &'static str {
        match self {
            // Nothing but a secret in the clear is kept from there.
            Place::Internet => {
                "an address of the internet, and its secret would go there in the clear: use an https url"
            }
            Place::Machine => "an address of this machine",
            Place::Private => "an address of a private network",
            Place::Nowhere => "an address of nobody",
        }
    }
}

fn place_of(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(address) => place_of_v4(address),
        IpAddr::V6(address) => place_of_v6(address),
    }
}

fn place_of_v4(address: Ipv4Addr) -> Place {
    match address.octets() {
        [127, ..] => Place::Machine,
        [10, ..] | [192, 168, ..] => Place::Private,
        [172, 16..=31, ..] => Place::Private,
        // Behind a provider's translation, and what a machine gives itself; clouds have their secrets there.
        [100, 64..=127, ..] | [169, 254, ..] => Place::Private,
        [0, ..] | [192, 0, 0, _] | [224..=255, ..] => Place::Nowhere,
        // For tests and for books.
        [198, 18..=19, ..] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Place::Nowhere
        }
        _ => Place::Internet,
    }
}

fn place_of_v6(address: Ipv6Addr) -> Place {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Place::Machine,
        // Mapped, and translated.
        [0, 0, 0, 0, 0, 0xffff, high, low] => place_of_v4(embedded(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => place_of_v4(embedded(high, low)),
        [0x2002, high, low, ..] => place_of_v4(embedded(high, low)),
        [0x64, 0xff9b, 1, ..] | [0xfc00..=0xfdff, ..] | [0xfe80..=0xfeff, ..] => Place::Private,
        // Teredo, which hides where it leads, and what is for books.
        [0x2001, 0 | 0xdb8, ..] => Place::Nowhere,
        [0x2000..=0x3fff, ..] => Place::Internet,
        _ => Place::Nowhere,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_judged_by_where_it_leads() {
        let table = [
            (
                Place::Machine,
                "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::",
            ),
            (
                Place::Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 100.64.0.0 \
                 100.127.255.255 169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe \
                 2002:a9fe:a9fe::1 64:ff9b:1::1 fc00::1 fdff::1 fe80::1 febf::1 fec0::1",
            ),
            (
                Place::Nowhere,
                "0.0.0.0 0.1.2.3 :: 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 192.0.0.1 \
                 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 ff02::1 2001::1 \
                 2001:db8::1 100::1 ::127.0.0.1 ::ffff:0.0.0.0 4000::1",
            ),
            (
                Place::Internet,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
                 128.0.0.0 169.253.0.1 169.255.0.1 172.15.255.255 172.32.0.0 192.167.0.1 \
                 223.255.255.255 2606:4700::1 2a00::1 ::ffff:1.1.1.1 2001:200::1",
            ),
        ];
        for (place, addresses) in table {
            for address in addresses.split_whitespace() {
                assert_eq!(place_of(address.parse().unwrap()), place, "{address}");
            }
        }
    }

    #[test]
    fn each_reach_goes_as_far_as_it_says() {
        for (address, expected) in [
            ("1.1.1.1", [true, true, true, false, false]),
            ("127.0.0.1", [false, true, true, true, true]),
            ("10.0.0.1", [false, false, true, false, true]),
            ("169.254.169.254", [false, false, true, false, true]),
            ("0.0.0.0", [false; 5]),
            ("255.255.255.255", [false; 5]),
        ] {
            let address = address.parse().unwrap();
            let all = [Reach::Public, Reach::Local, Reach::Private, Reach::Machine, Reach::Near];
            let found = all.map(|reach| reach.check(address).is_ok());
            assert_eq!(found, expected, "{address}");
        }
    }
}
