-- name: recordSecretKey
-- The mark of the last start's key.
insert into hooks.secret_key (mark) values (:mark)
on conflict (only_row) do update set mark = excluded.mark where hooks.secret_key.mark <> excluded.mark

-- name: readSecretKey
-- No row before the first start with a key.
select mark from hooks.secret_key

-- name: countUnreadable
-- Rows with a secret that does not begin with this mark; with an empty one all that have a secret.
select (select count(*)::int4 from hooks.providers
         where substr(signing_secret, 1, 5) <> :mark) as providers,
       (select count(*)::int4 from hooks.destinations d
         where d.kind = 'standing'
           and (substr(d.sign_secret, 1, 5) <> :mark or substr(d.auth, 1, 5) <> :mark
                or exists (select from jsonb_each_text(d.headers) h
                            where substr(decode(h.value, 'base64'), 1, 5) <> :mark))) as destinations,
       (select count(*)::int4 from ops.checks c
         where exists (select from jsonb_each_text(c.headers) h
                        where substr(decode(h.value, 'base64'), 1, 5) <> :mark)) as checks,
       (select count(*)::int4 from notices.targets
         where substr(address, 1, 5) <> :mark or substr(token, 1, 5) <> :mark) as notice_targets
