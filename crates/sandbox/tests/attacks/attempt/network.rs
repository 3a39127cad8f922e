//! Ways to send something to somebody.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, ipproto};

use crate::scene::{Scene, Verdict, Ways, way};
use crate::sys;

const WAIT: Duration = Duration::from_millis(300);
const LEAK: &[u8] = b"leak";

fn by_tcp(address: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&address, WAIT)?.write_all(LEAK)
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

pub(crate) fn tcp(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("loopback", by_tcp(local(scene.tcp4)));
    ways.tried("another address of it", by_tcp((Ipv4Addr::new(127, 1, 2, 3), scene.tcp4).into()));
    ways.tried("the address of none", by_tcp((Ipv4Addr::UNSPECIFIED, scene.tcp4).into()));
    ways.verdict()
}

pub(crate) fn tcp6(scene: &Scene) -> Verdict {
    let Some(port) = scene.tcp6 else { return Verdict::Absent("this machine has no IPv6".to_owned()) };
    let mut ways = Ways::default();
    ways.tried("loopback", by_tcp((Ipv6Addr::LOCALHOST, port).into()));
    ways.tried("IPv4 in IPv6", by_tcp((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), scene.tcp4).into()));
    ways.verdict()
}

pub(crate) fn fast_open(scene: &Scene) -> Verdict {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let sent = socket.and_then(|socket| {
        let flags = rustix::net::SendFlags::from_bits_retain(0x2000_0000);
        rustix::net::sendto(&socket, LEAK, flags, &local(scene.tcp4))
    });
    way(sent.map_err(io::Error::from))
}

pub(crate) fn multipath(scene: &Scene) -> Verdict {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP));
    if socket.as_ref().is_err_and(|errno| *errno == rustix::io::Errno::PROTONOSUPPORT) && !scene.confined {
        return Verdict::Absent("this kernel has no MPTCP".to_owned());
    }
    way(socket
        .and_then(|socket| {
            rustix::net::connect(&socket, &local(scene.tcp4))?;
            rustix::net::send(&socket, LEAK, rustix::net::SendFlags::NOSIGNAL)
        })
        .map_err(io::Error::from))
}

/// What nobody listens to is refused at once; what somebody takes isn't answered.
fn by_udp(to: SocketAddr) -> io::Result<()> {
    let from: SocketAddr =
        if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(from)?;
    socket.connect(to)?;
    socket.send(LEAK)?;
    socket.set_read_timeout(Some(WAIT))?;
    match socket.recv(&mut [0; 1]) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

pub(crate) fn udp(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("the host", by_udp(local(scene.udp)));
    if scene.confined {
        ways.tried("beyond", by_udp((Ipv4Addr::new(192, 0, 2, 1), 53).into()));
        ways.tried("everybody near", by_udp((Ipv4Addr::new(224, 0, 0, 1), 53).into()));
    }
    ways.verdict()
}

pub(crate) fn abstract_socket(scene: &Scene) -> Verdict {
    let address = UnixAddress::from_abstract_name(&scene.name).unwrap();
    way(UnixStream::connect_addr(&address).and_then(|mut socket| socket.write_all(LEAK)))
}

fn by_path(path: &Path) -> io::Result<()> {
    UnixStream::connect(path)?.write_all(LEAK)
}

pub(crate) fn docker_like(scene: &Scene) -> Verdict {
    way(by_path(&scene.out.join("docker.sock")))
}

pub(crate) fn shown_socket(scene: &Scene) -> Verdict {
    way(by_path(&scene.shown.join("docker.sock")))
}

pub(crate) fn docker(scene: &Scene) -> Verdict {
    let sockets = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/containerd/containerd.sock",
    ];
    if !scene.confined && !sockets.iter().any(|path| Path::new(path).exists()) {
        return Verdict::Absent("no container service runs here".to_owned());
    }
    let mut ways = Ways::default();
    for path in sockets {
        // Connected only; nothing is asked of it.
        ways.tried(path, UnixStream::connect(path));
    }
    ways.verdict()
}

pub(crate) fn ssh_agent(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    if let Some(path) = std::env::var_os("SSH_AUTH_SOCK") {
        ways.tried("as the environment says", by_path(Path::new(&path)));
    }
    ways.tried("by its usual name", by_path(&scene.home.join(".ssh/agent")));
    ways.verdict()
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<usize> {
    let number = |value: libc::c_int| usize::try_from(value).unwrap();
    sys::call(libc::SYS_socket, [number(family), number(kind), number(protocol)])
}

pub(crate) fn vsock(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("a stream", socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0));
    ways.tried("packets", socket(libc::AF_VSOCK, libc::SOCK_DGRAM, 0));
    ways.tried("a pair", pair(libc::AF_VSOCK));
    ways.verdict()
}

fn pair(family: libc::c_int) -> io::Result<usize> {
    let mut both = [0i32; 2];
    let family = usize::try_from(family).unwrap();
    sys::call(libc::SYS_socketpair, [family, 1, 0, both.as_mut_ptr().addr()])
}

/// The host's interfaces, and the parts of the kernel that netlink leads to.
pub(crate) fn netlink(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("interfaces beside the loopback", other_interfaces());
    for (name, protocol) in
        [("netfilter", 12), ("audit", 9), ("transformations", 6), ("events", 15), ("generic", 16)]
    {
        ways.tried(name, socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol));
    }
    if !scene.confined {
        // Some kernels have only a part of them; one is enough to see that the way is there.
        ways.tried("routes", socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE));
    }
    ways.verdict()
}

/// The numbers of all links but the first, which is the loopback's in every namespace.
fn other_interfaces() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    // `struct nlmsghdr` (32 bytes with the body, RTM_GETLINK, request and dump) and an empty
    // `struct ifinfomsg`.
    let mut request = [0u8; 32];
    let head = [32u32.to_ne_bytes(), [18, 0, 1, 3], 1u32.to_ne_bytes()].concat();
    request[..head.len()].copy_from_slice(&head);
    rustix::net::send(&socket, &request, rustix::net::SendFlags::empty())?;
    let mut answer = vec![0; 1 << 16];
    let (_, length) = rustix::net::recv(&socket, &mut answer[..], rustix::net::RecvFlags::empty())?;
    let mut rest = answer.get(..length).unwrap_or_default();
    while let Some((size, kind)) = rest.get(..6).map(|head| {
        (
            u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize,
            u16::from_ne_bytes([head[4], head[5]]),
        )
    }) {
        // RTM_NEWLINK; the index is after the header and four bytes.
        let index = rest.get(20..24).map_or(0, |bytes| i32::from_ne_bytes(bytes.try_into().unwrap()));
        if kind == 16 && index > 1 {
            return Ok(());
        }
        rest = rest.get(size.next_multiple_of(4).max(16)..).unwrap_or_default();
    }
    Err(io::Error::other("only a loopback"))
}

pub(crate) fn packets(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("frames", socket(libc::AF_PACKET, libc::SOCK_RAW, 0));
    ways.tried("raw IP", socket(libc::AF_INET, libc::SOCK_RAW, 255));
    ways.tried("raw ICMP", socket(libc::AF_INET, libc::SOCK_RAW, 1));
    ways.tried("raw IPv6", socket(libc::AF_INET6, libc::SOCK_RAW, 255));
    ways.verdict()
}

pub(crate) fn kernel_crypto(scene: &Scene) -> Verdict {
    let made = socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0);
    let missing = made.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EAFNOSUPPORT));
    if missing && !scene.confined {
        return Verdict::Absent("this kernel has no AF_ALG".to_owned());
    }
    way(made)
}

/// Whether there is a way to an address on the net. Nothing is sent.
pub(crate) fn internet(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for address in
        [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::new(10, 0, 0, 1)]
    {
        let route =
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| socket.connect((address, 80)));
        ways.tried(&address.to_string(), route);
    }
    ways.verdict()
}
