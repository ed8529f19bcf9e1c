import pytest

from toolgate.testing import opened_kit


@pytest.mark.anyio
async def test_what_was_noted_can_be_read(tmp_path):
    async with opened_kit(tmp_path, packs__enabled=["weather"], weather__unit="fahrenheit") as kit:
        await kit.call("weather.note", city="Rome", celsius=20)
        read = await kit.call("weather.get", city="Rome")
        assert read.body == {"city": "Rome", "temperature": 68.0, "unit": "fahrenheit"}
        dry = await kit.call("weather.note", city="Rome", celsius=25, dry_run=True)
        assert dry.diff.changes[0]["before"] == {"city": "Rome", "celsius": 20}
        unknown = await kit.call("weather.get", city="Nowhere")
        assert unknown.body["error"].startswith("Nothing is known of Nowhere.")
