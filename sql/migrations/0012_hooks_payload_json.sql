-- The bounds belong to what they guard: none over 1 MiB is read, which would take the embedded engine gigabytes,
-- and none with over 100,000 brackets, which could end it: nested, its own limit does not see them.
create or replace function hooks.payload_json(payload bytea) returns jsonb
language plpgsql immutable strict parallel safe
as $$
declare
  escaped text;
begin
  if octet_length(payload) > 1048576 then
    return null;
  end if;
  escaped := encode(payload, 'escape');
  if length(escaped) - length(translate(escaped, '[{', '')) > 100000 then
    return null;
  end if;
  return convert_from(payload, 'UTF8')::jsonb;
exception
  -- Not UTF-8, not JSON, or with a NUL that jsonb can't hold: it has no member that could be equal.
  when others then return null;
end
$$;
comment on function hooks.payload_json is
  'The payload as JSON, or null when it is none or too much to be read: for the search by a path.';
