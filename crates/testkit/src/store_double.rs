//! The part of a store double that only passes calls on.

/// Implements methods of `journeyman_store::Store` by calling those of the field that is named
/// first: `pass_on_store!(inner: create, read, delete);` in the `impl`. A double writes out only
/// what it does itself.
#[macro_export]
macro_rules! pass_on_store {
    ($inner:ident: $($method:ident),+ $(,)?) => { $($crate::pass_on_store!(@$method $inner);)+ };
    (@create $inner:ident) => {
        $crate::pass_on_store!(@method $inner create -> () {
            id: &::journeyman_protocol::SessionId,
            root: &str,
            title: &str,
            now: ::journeyman_protocol::UnixMillis,
        });
    };
    (@fork $inner:ident) => {
        $crate::pass_on_store!(@method $inner fork -> () {
            parent: &::journeyman_protocol::SessionId,
            at: ::journeyman_protocol::Seq,
            child: &::journeyman_protocol::SessionId,
            title: &str,
            now: ::journeyman_protocol::UnixMillis,
        });
    };
    (@read $inner:ident) => { $crate::pass_on_store!(@entries $inner read); };
    (@read_records $inner:ident) => { $crate::pass_on_store!(@entries $inner read_records); };
    (@read_chunk $inner:ident) => { $crate::pass_on_store!(@entries $inner read_chunk); };
    (@changed $inner:ident) => {
        $crate::pass_on_store!(@method $inner changed -> ::journeyman_protocol::Seq {
            session: &::journeyman_protocol::SessionId,
            after: ::journeyman_protocol::Seq,
        });
    };
    (@sessions $inner:ident) => {
        $crate::pass_on_store!(@method $inner sessions -> ::std::vec::Vec<::journeyman_store::SessionSummary> {
            root: ::std::option::Option<&str>,
            limit: usize,
        });
    };
    (@find $inner:ident) => {
        $crate::pass_on_store!(@method $inner find -> ::std::vec::Vec<::journeyman_store::SessionSummary> {
            prefix: &str,
        });
    };
    (@set_status $inner:ident) => {
        $crate::pass_on_store!(@method $inner set_status -> () {
            session: &::journeyman_protocol::SessionId,
            status: &str,
            now: ::journeyman_protocol::UnixMillis,
        });
    };
    (@lease $inner:ident) => {
        $crate::pass_on_store!(@method $inner lease -> () {
            session: &::journeyman_protocol::SessionId,
            holder: &str,
            now: ::journeyman_protocol::UnixMillis,
            ttl_ms: u64,
        });
    };
    (@release $inner:ident) => {
        $crate::pass_on_store!(@method $inner release -> () {
            session: &::journeyman_protocol::SessionId,
            holder: &str,
        });
    };
    (@delete $inner:ident) => {
        $crate::pass_on_store!(@method $inner delete -> () { session: &::journeyman_protocol::SessionId });
    };
    (@entries $inner:ident $method:ident) => {
        $crate::pass_on_store!(@method $inner $method -> ::std::vec::Vec<::journeyman_store::Entry> {
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
