create function hooks.payload_json(payload bytea) returns jsonb
language plpgsql immutable strict parallel safe
as $$
begin
  return convert_from(payload, 'UTF8')::jsonb;
exception
  -- Not UTF-8, not JSON, or with a NUL that jsonb can't hold: it has no member that could be equal.
  when others then return null;
end
$$;
comment on function hooks.payload_json is 'The payload as JSON, or null when it is none: for the search by a path.';
