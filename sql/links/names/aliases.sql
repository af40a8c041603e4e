-- name: writeNames
-- Gives a link the names of the JSON array :names and no others. Empty when it has all of them; else one that another link
-- has, and then the transaction must be undone. Names are locked in their order.
with wanted as (
  select name
    from jsonb_array_elements_text(:names::jsonb) as given(name)
), removed as (
  delete from links.names
   where link_id = :link
     and name not in (select name from wanted)
), added as (
  insert into links.names (name, link_id)
  select name, :link::uuid
    from wanted
   order by name collate "C"
  on conflict (name) do nothing
  returning name
)
select w.name
  from wanted w
 where not exists (select from added a where a.name = w.name)
   and not exists (select from links.names n where n.name = w.name and n.link_id = :link)
 limit 1;

-- name: renameLink
-- Gives a link another slug, which is one of its names already.
update links.links
   set slug = :slug, updated_at = :at
 where id = :link;

-- name: listNamesakes
-- The first links with a name that differs from :name in dashes only, each once.
select distinct link_id as id
  from links.names
 where replace(name, '-', '') = replace(:name, '-', '')
 limit :limit;
