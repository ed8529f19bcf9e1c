"""A pack of two tools: note what the weather is, and read it again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple

import typer
from pydantic import Field
from sqlalchemy import Column, Connection, Float, MetaData, String, Table, select

import toolgate.pack as tg

RULES = """@id("users-read-the-weather")
permit (principal, action, resource)
when {
  resource.pack == "weather" && resource.effect == "read" && principal.roles.contains("user")
};
"""
tables = MetaData(info={"pack": "weather"})
observations = Table(
    "weather_observations",
    tables,
    Column("city", String(100), primary_key=True),
    Column("celsius", Float, nullable=False),
)
family = tg.Family("weather", tg.Pack("weather", tg.SENTENCE, "What the weather is."))


class WeatherSettings(tg.Section):
    unit: Literal["celsius", "fahrenheit"] = Field("celsius", description="Unit of answers.")


class World(NamedTuple):
    database: tg.Database
    unit: str


class City(tg.Input):
    city: str = Field(min_length=1, max_length=100, description="The city's name.")


class Observation(City):
    celsius: float = Field(ge=-100, le=70, description="The temperature.")


class Weather(tg.Output):
    city: str = Field(description="The city's name.")
    temperature: float = Field(description="The temperature, in the unit.")
    unit: str = Field(description="The unit.")


def answer(world: World, city: str, celsius: float) -> Weather:
    warm = celsius if world.unit == "celsius" else celsius * 9 / 5 + 32
    return Weather(city=city, temperature=warm, unit=world.unit)


def store(tx: tg.Transaction, connection: Connection, city: str, celsius: float) -> None:
    where = [observations.c.city == city]
    if not tg.update_records(tx, connection, observations, where, {"celsius": celsius}):
        tg.insert_record(tx, connection, observations, {"city": city, "celsius": celsius})


@family.tool("weather.get", role=tg.Role.ADMIN, effect=tg.Effect.READ, title="Get the weather")
async def get(ctx: tg.Context[World], args: City) -> Weather:
    """Read the latest temperature of a city."""
    query = select(observations.c.celsius).where(observations.c.city == args.city)
    celsius = await ctx.world.database.read(lambda connection: connection.scalar(query))
    if celsius is None:
        raise tg.NotFound(f"Nothing is known of {args.city}. Note it with weather.note.")
    return answer(ctx.world, args.city, celsius)


@family.tool(
    "weather.note", role=tg.Role.ADMIN, effect=tg.Effect.WRITE, writes=[tg.Target.TABLES], title="Note it"
)
async def note(ctx: tg.Context[World], args: Observation) -> Weather:
    """Note the temperature of a city, in place of what was noted before."""
    await ctx.tx.run(lambda connection: store(ctx.tx, connection, args.city, args.celsius))
    return answer(ctx.world, args.city, args.celsius)


async def demo(world: World, site: tg.Site) -> int:
    held = await site.database.read(lambda connection: connection.scalar(select(observations)))
    if held is None:
        async with site.database.transaction() as tx:
            await tx.run(lambda connection: store(tx, connection, "Oslo", -3.5))
    return int(held is None)


def commands() -> typer.Typer:
    app = typer.Typer(help="About the weather.", callback=lambda: None)
    app.command("units")(lambda: typer.echo("celsius, fahrenheit"))
    return app


@asynccontextmanager
async def opened(site: tg.Site, settings: WeatherSettings) -> AsyncGenerator[World]:
    yield World(site.database, settings.unit)


OFFER = tg.Offer(
    pack=family.pack,
    tools=tuple(family.tools),
    settings=WeatherSettings,
    open=opened,
    schema=tg.Schema(tables, "toolgate_weather.migrations", "weather_version"),
    rules=RULES,
    demo=demo,
    commands="toolgate_weather:commands",
)
