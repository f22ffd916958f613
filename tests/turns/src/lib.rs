//! `#[test]` as the integration tests have it: the usual one, whose body begins by saying that it runs. So no test can be
//! written that runs beside a live one (`cohtrace_tests::turn`).

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// A test that runs beside others until it takes the turn to run alone. Takes the place of the standard library's where this
/// crate is `#[macro_use]`.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.last_mut()
        && body.delimiter() == Delimiter::Brace
    {
        let mut statements = parsed("let _place = ::cohtrace_tests::turn::beside_others();");
        statements.extend([TokenTree::Group(body.clone())]);
        let mut guarded = Group::new(Delimiter::Brace, statements);
        guarded.set_span(body.span());
        *body = guarded;
    }
    // What is no function with a body is refused by the compiler's own words.
    let mut test = parsed("#[::core::prelude::v1::test]");
    test.extend(tokens);
    test
}

fn parsed(text: &str) -> TokenStream {
    text.parse().expect("it is Rust")
}
