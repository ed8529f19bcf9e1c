"""Images of posts: fetched through the guard, made small, committed beside the text."""

import io
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image
from tests.identity.publisher import Answer, Publisher
from tests.packs.backend.publishing.conftest import (
    Repository,
    front_matter,
    opened_site,
    picture,
    show,
)

from toolgate.packs.backend.publishing import images as fetching
from toolgate.packs.backend.publishing.image_links import image_links
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


async def refusal(kit: Kit, body: str, **more: Any) -> str:
    outcome = await kit.call("create_post", title="With images", body=body, **more)
    assert outcome.status == 400, outcome.text
    return outcome.text


async def test_images_are_committed_as_small_jpegs_and_linked(
    kit: Kit, images: Publisher, repository: Repository
) -> None:
    wide = show(images, "/wide.png", picture(4000, 1000))
    clear = show(images, "/clear.webp", picture(30, 20, "WEBP", "RGBA"), "image/webp")
    header = show(images, "/header.jpg", picture(100, 3000, "JPEG"), "image/jpeg")
    before = repository.commits()
    outcome = await kit.call(
        "create_post",
        title="Pictures",
        body=f'Grüße 😀 ![A wide one]({wide} "t") <img src="{clear}" alt="x">\n\n'
        f"Again ![]({wide}) and `![code]({wide})`, ![here](/local.png).",
        headerImageURL=header,
    )
    assert outcome.status == 200, outcome.text
    assert repository.commits() == before + 1
    clone = repository.clone()
    content = (clone / outcome.body["path"]).read_bytes()
    assert content.decode().endswith(
        'Grüße 😀 ![A wide one](@post/a-wide-one.jpg "t") <img src="@post/image.jpg" alt="x">\n\n'
        f"Again ![](@post/a-wide-one.jpg) and `![code]({wide})`, ![here](/local.png).\n"
    )
    post = front_matter(content)["post"]
    assert post["image"] == "@post/pictures.jpg"
    folder = f"src/assets/images/blog/post-{post['id']}"
    names = ["pictures.jpg", "a-wide-one.jpg", "image.jpg"]
    assert outcome.body["images"] == [f"{folder}/{name}" for name in names]
    sizes = {}
    for name in names:
        with Image.open(clone / folder / name) as image:
            assert image.format == "JPEG"
            sizes[name] = image.size
    assert sizes == {
        "pictures.jpg": (68, 2048),
        "a-wide-one.jpg": (2048, 512),
        "image.jpg": (30, 20),
    }
    assert images.asked("/wide.png") == 1


async def test_metadata_is_left_out_and_the_image_is_upright(
    kit: Kit, images: Publisher, repository: Repository
) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "a secret camera"  # turned by 90 degrees
    url = show(images, "/a.jpg", picture(300, 100, "JPEG", exif=exif), "image/jpeg")
    outcome = await kit.call("create_post", title="Up", body=f"x ![a]({url})")
    data = repository.read(outcome.body["images"][0])
    assert b"a secret camera" not in data
    assert Image.open(io.BytesIO(data)).size == (100, 300)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://169.254.169.254/latest/meta-data", "has no public address"),
        ("https://localhost/x.png", "has no public address"),
        ("https://[::1]/x.png", "has no public address"),
        ("http://example.com/x.png", "must begin with https://"),
        ("https://example.com:8443/x.png", "must use port 443"),
        ("https://user:pw@example.com/x.png", "no user or password"),
    ],
)
async def test_addresses_inside_are_refused(
    kit: Kit, repository: Repository, url: str, says: str
) -> None:
    before = repository.commits()
    told = await refusal(kit, f"![a]({url})")
    assert told.count(says) == 1
    assert url in told
    assert "headerImageURL: the image" in await refusal(kit, "text", headerImageURL=url)
    assert repository.commits() == before


async def test_a_redirect_to_loopback_is_refused(kit: Kit, images: Publisher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.setblocking(False)
        place = f"http://127.0.0.1:{inside.getsockname()[1]}/x.png"
        images.answers["/r"] = Answer(b"", 302, {"Location": place})
        assert "cannot be fetched" in await refusal(kit, f"![a]({images.url}/r)")
        with pytest.raises(BlockingIOError):
            inside.accept()


async def test_a_bomb_is_refused_and_takes_no_memory(
    kit: Kit, images: Publisher, repository: Repository
) -> None:
    url = show(images, "/bomb.png", picture(20_000, 20_000, "PNG", "1"))
    before = psutil.Process().memory_info().rss
    assert "has 20000 × 20000 pixels" in await refusal(kit, f"![a]({url})")
    assert psutil.Process().memory_info().rss - before < 60_000_000
    assert repository.commits() == 1


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"garbage", "image/png", "is not a JPEG, PNG, GIF or WEBP image"),
        (b"<svg onload='x()'/>", "image/svg+xml", "is not a JPEG, PNG, GIF or WEBP image"),
        (picture(500, 500)[:-200], "image/png", "is damaged"),
        (b"<html>", "text/html", "did not send"),
        (b"", "image/png", "is not a JPEG"),
    ],
)
async def test_what_is_no_image_is_told(
    kit: Kit, images: Publisher, body: bytes, kind: str, says: str
) -> None:
    url = show(images, "/x", body, kind)
    assert says in await refusal(kit, f"![a]({url})")


async def test_every_image_that_cannot_be_used_is_told_at_once(kit: Kit, images: Publisher) -> None:
    bad = [f"{images.url}/{name}.png" for name in ("one", "two")]
    told = await refusal(kit, " ".join(f"![a]({one})" for one in bad), headerImageURL=bad[0])
    assert all(one in told for one in bad)
    assert "status 404" in told


async def test_an_endless_image_is_cut_off(kit: Kit, images: Publisher) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1024):
            yield bytes(1024 * 1024)

    url = show(images, "/gb.png", endless())
    assert "sent more than" in await refusal(kit, f"![a]({url})")


async def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        async with opened_site(tmp_path, outbound__allow=[place]) as kit:
            posts = kit.app.worlds["backend"].world.posts
            object.__setattr__(
                posts.images, "limits", fetching.ResponseLimits(seconds=0.5, redirects=3)
            )
            began = time.monotonic()
            assert "did not answer within" in await refusal(kit, f"![a](http://{place}/x.png)")
            assert time.monotonic() - began < 20


async def test_a_decoder_that_does_not_end_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("import time\ntime.sleep(1000)\n", encoding="utf-8")
    monkeypatch.setattr(fetching, "WORKER", worker)
    monkeypatch.setattr(fetching, "CONVERT_SECONDS", 0.3)
    assert await fetching.convert(b"x") == b"takes too long to be read"
    left = [one for one in psutil.Process().children() if str(worker) in " ".join(one.cmdline())]
    assert left == []


async def test_too_many_images_are_refused_before_any_is_fetched(
    kit: Kit, images: Publisher
) -> None:
    body = " ".join(f"![a]({images.url}/{number}.png)" for number in range(31))
    assert "at most 30" in await refusal(kit, body)
    assert images.seen == []


def test_image_links_are_found_in_time_whatever_the_text() -> None:
    for text in ("![" * 200_000, "<img " * 80_000, "`" * 400_000, "![a](" * 80_000, "((" * 200_000):
        began = time.process_time()
        assert image_links(text) == []
        assert time.process_time() - began < 2


def test_places_of_links_count_characters() -> None:
    text = "é😀 ![a](https://x/é.png)\n~~~\n![b](https://y/)\n~~~\n<IMG SRC='//z/1.gif'>"
    found = image_links(text)
    assert [one.url for one in found] == ["https://x/é.png", "https://z/1.gif"]
    assert [text[one.start : one.end] for one in found] == ["https://x/é.png", "//z/1.gif"]
