/*
 * The proxies, in addition to the transparent path, for programs that are configured with one: HTTP (CONNECT, and URLs of http://) and
 * SOCKS 5 without authentication. A client says a name or an address, which is brought to its one form, judged and dialled as everywhere; then the
 * relay has the connection. What is refused is answered in the protocol's own words, with the rule that would allow it.
 */
#pragma once

enum proxy_protocol { PROXY_HTTP, PROXY_SOCKS };

/* Takes a listener. -1 with errno. */
int proxy_on(int fd, enum proxy_protocol protocol);
