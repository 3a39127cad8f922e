//! The part of a store double that only passes calls on.

/// Implements methods of `journeyman_store::Store` by calling those of the field that is named
/// first: `forward_store_methods!(inner: create, read, delete);` in the `impl`. A double writes out
/// only what it does itself.
#[macro_export]
macro_rules! forward_store_methods {
    ($inner:ident: $($method:ident),+ $(,)?) => { $($crate::forward_store_methods!(@$method $inner);)+ };
    (@create $inner:ident) => {
        $crate::forward_store_methods!(@method $inner create -> () {
            id: &::journeyman_protocol::SessionId,
            root: &str,
            title: &str,
            now: ::journeyman_protocol::UnixMillis,
        });
    };
    (@fork $inner:ident) => {
        $crate::forward_store_methods!(@method $inner fork -> () {
            parent: &::journeyman_protocol::SessionId,
            at: ::journeyman_protocol::Seq,
            child: &::journeyman_protocol::SessionId,
            title: &str,
            now: ::journeyman_protocol::UnixMillis,
        });
    };
    (@read $inner:ident) => { $crate::forward_store_methods!(@entries $inner read); };
    (@read_records $inner:ident) => { $crate::forward_store_methods!(@entries $inner read_records); };
    (@read_chunk $inner:ident) => { $crate::forward_store_methods!(@entries $inner read_chunk); };
    (@wait_for_entry $inner:ident) => {
        $crate::forward_store_methods!(@method $inner wait_for_entry -> ::journeyman_protocol::Seq {
            session: &::journeyman_protocol::SessionId,
            after: ::journeyman_protocol::Seq,
        });
    };
    (@sessions $inner:ident) => {
        $crate::forward_store_methods!(@method $inner sessions -> ::std::vec::Vec<::journeyman_store::SessionSummary> {
            root: ::std::option::Option<&str>,
            limit: usize,
        });
    };
    (@find_sessions $inner:ident) => {
        $crate::forward_store_methods!(@method $inner find_sessions -> ::std::vec::Vec<::journeyman_store::SessionSummary> {
            prefix: &str,
        });
    };
    (@set_status $inner:ident) => {
        $crate::forward_store_methods!(@method $inner set_status -> () {
            session: &::journeyman_protocol::SessionId,
            status: &str,
            now: ::journeyman_protocol::UnixMillis,
        });
    };
    (@acquire_lease $inner:ident) => {
        $crate::forward_store_methods!(@method $inner acquire_lease -> () {
            session: &::journeyman_protocol::SessionId,
            holder: &str,
            now: ::journeyman_protocol::UnixMillis,
            ttl_ms: u64,
        });
    };
    (@release_lease $inner:ident) => {
        $crate::forward_store_methods!(@method $inner release_lease -> () {
            session: &::journeyman_protocol::SessionId,
            holder: &str,
        });
    };
    (@delete $inner:ident) => {
        $crate::forward_store_methods!(@method $inner delete -> () { session: &::journeyman_protocol::SessionId });
    };
    (@entries $inner:ident $method:ident) => {
        $crate::forward_store_methods!(@method $inner $method -> ::std::vec::Vec<::journeyman_store::Entry> {
            session: &::journeyman_protocol::SessionId,
            after: ::journeyman_protocol::Seq,
            limit: usize,
        });
    };
    (@method $inner:ident $method:ident -> $result:ty { $($name:ident: $kind:ty),+ $(,)? }) => {
        fn $method(
            &self,
            $($name: $kind),+
        ) -> ::futures_util::future::BoxFuture<'_, ::std::result::Result<$result, ::journeyman_store::StoreError>> {
            self.$inner.$method($($name),+)
        }
    };
}
