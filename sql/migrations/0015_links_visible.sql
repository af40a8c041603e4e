create index links_public on links.links (slug) where visibility = 'public';
comment on index links.links_public is 'So that a list, a search and suggestions look at no link that only others see.';
