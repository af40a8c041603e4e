# Tailscale Serve in front of Gatehouse: run these lines once, on the host of Gatehouse. Serve gets the certificate,
# asks nobody to sign in, and names who comes, by the device: it removes the headers Tailscale-User-* of a visitor.
#
# Whoever in your tailnet reaches these ports sees all pages of hooks and ops; devices with a tag come without a name.
# Restrict the ports to people by a grant in the tailnet's policy.
tailscale serve --bg --https=443 http://127.0.0.1:8081
tailscale serve --bg --https=8443 http://127.0.0.1:8080
tailscale serve --bg --https=8444 http://127.0.0.1:8082

# Providers on the internet reach the receivers alone, on a port of their own (443, 8443 or 10000). Never give
# Funnel a port of the pages: nobody would be asked for anything.
tailscale funnel --bg --https=10000 --set-path=/webhooks http://127.0.0.1:8080/webhooks
