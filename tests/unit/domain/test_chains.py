"""A chain's running summary reads the same whichever page was summarized last."""

from uuid import UUID

from memoryos_pipeline.domain.chains import META_CHARACTERS, ChainLink, extend_meta, run_metas

PAGES = [UUID(int=number) for number in range(4)]


class TestExtendMeta:
    def test_the_beginning_stays_and_the_newest_page_is_in_it(self) -> None:
        """Long chains are cut in the middle, never beyond 600 characters."""
        meta = extend_meta("begin " * 200, "end")

        assert len(meta) <= META_CHARACTERS
        assert meta.startswith("begin")
        assert meta.endswith("end")


class TestRunMetas:
    def test_pages_that_continue_carry_what_came_before(self) -> None:
        """Each page of the chain has the summaries up to itself."""
        links = [ChainLink(PAGES[0], "a", continues=False), ChainLink(PAGES[1], "b", continues=True)]

        assert list(run_metas("ignored", links)) == [(PAGES[0], "a"), (PAGES[1], "a\nb")]

    def test_a_page_in_the_middle_goes_on_from_the_page_ahead(self) -> None:
        """What stands before the first page given is what it continues."""
        assert list(run_metas("a", [ChainLink(PAGES[1], "b", continues=True)])) == [(PAGES[1], "a\nb")]

    def test_the_next_chain_is_left_alone(self) -> None:
        """A page that begins something new ends the walk."""
        links = [ChainLink(PAGES[0], "a", continues=False), ChainLink(PAGES[1], "b", continues=False)]

        assert list(run_metas(None, links)) == [(PAGES[0], "a")]
