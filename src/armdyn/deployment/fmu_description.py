"""``modelDescription.xml`` of an arm's FMU, and the description of how its sources are built."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from armdyn.deployment.fmu_model import UNITS, FmuModel, FmuVariable
from armdyn.html import visible
from armdyn.values import fingerprint

PARTS = ("fmu", "stepping", "integration", "modes", "dynamics", "unsupported")
SOURCES = tuple(f"armdyn_{part}.c" for part in PARTS)  # beside the arm's own


def attribute(text: str) -> str:
    """Text from a robot's file as a quoted attribute on one line."""
    return quoteattr(visible(" ".join(text.split())))


def model_description(model: FmuModel, name: str, identifier: str, version: str) -> str:
    """The file's text."""
    capabilities = f'modelIdentifier="{identifier}" canGetAndSetFMUState="true" canSerializeFMUState="true"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<fmiModelDescription fmiVersion="3.0" modelName={attribute(name)}',
        f'  instantiationToken="{token(model, identifier)}"',
        f"  description={attribute(f'forward dynamics of {name}, from motor torques to joint motion')}",
        f'  generationTool="armdyn {version}" variableNamingConvention="structured">',
        f'  <ModelExchange {capabilities} needsCompletedIntegratorStep="false"/>',
        f'  <CoSimulation {capabilities} canHandleVariableCommunicationStepSize="true"/>',
        *_units(model),
        "  <LogCategories>",
        '    <Category name="logStatusError" description="errors, with their causes"/>',
        "  </LogCategories>",
        f'  <DefaultExperiment startTime="0" stopTime="1" tolerance="1e-6" stepSize="{10 * model.step!r}"/>',
        "  <ModelVariables>",
        *map(_variable, model.variables),
        "  </ModelVariables>",
        *_structure(model),
        "</fmiModelDescription>",
        "",
    ]
    return "\n".join(lines)


def build_description(identifier: str) -> str:
    """The text of ``sources/buildDescription.xml``."""
    files = [f'      <SourceFile name="{file}"/>' for file in (f"{identifier}.c", *SOURCES)]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<fmiBuildDescription fmiVersion="3.0">',
            f'  <BuildConfiguration modelIdentifier="{identifier}">',
            '    <SourceFileSet language="C99">',
            *files,
            "    </SourceFileSet>",
            '    <Library name="m"/>',
            "  </BuildConfiguration>",
            "</fmiBuildDescription>",
            "",
        ]
    )


def token(model: FmuModel, identifier: str) -> str:
    """What an importer must show to instantiate the model: it changes with the variables and with the arm."""
    facts = (identifier, model.arm.fingerprint, *(v.name for v in model.variables))
    return f"{{{fingerprint(*facts)[:32]}}}"


def _units(model: FmuModel) -> list[str]:
    used = dict.fromkeys(v.unit for v in model.variables if v.unit)
    lines = ["  <UnitDefinitions>"]
    for unit in used:
        exponents = " ".join(f'{base}="{power}"' for base, power in UNITS[unit].items())
        lines.append(f'    <Unit name="{unit}"><BaseUnit {exponents}/></Unit>')
    return [*lines, "  </UnitDefinitions>"]


def _variable(v: FmuVariable) -> str:
    if v.discrete:
        return (
            f'    <Int32 name="{v.name}" valueReference="{v.reference}" causality="{v.causality}" '
            f'variability="discrete" initial="calculated" description="{v.description}"/>'
        )
    fields = [f'name="{v.name}"', f'valueReference="{v.reference}"', f'causality="{v.causality}"']
    if v.causality == "parameter":
        fields.append('variability="tunable" initial="exact"')
    elif v.causality == "output" and v.start is not None:
        fields.append('variability="continuous" initial="exact"')
    elif v.causality in ("output", "local"):
        fields.append('variability="continuous" initial="calculated"')
    fields += [f'description="{v.description}"']
    fields += [f'unit="{v.unit}"'] if v.unit else []
    fields += [f'start="{float(v.start)!r}"'] if v.start is not None else []
    fields += [f'derivative="{v.derivative_of}"'] if v.derivative_of is not None else []
    return f"    <Float64 {' '.join(fields)}/>"


def _structure(model: FmuModel) -> list[str]:
    """Outputs, derivatives of the states in the order of the states, and what is unknown at the beginning."""
    n = model.n
    inputs, q, qd = (list(range(1 + k * n, 1 + (k + 1) * n)) for k in range(3))
    rates, accelerations, indicators = (list(range(1 + k * n, 1 + (k + 1) * n)) for k in (3, 4, 5))
    modes = [v.reference for v in model.variables if v.discrete]
    parameters = [v.reference for v in model.variables if v.causality == "parameter" and v.name != "solver.step"]
    moving = [*inputs, *q, *qd]
    lines = ["  <ModelStructure>"]
    lines += [_unknown("Output", k, [k]) for k in (*q, *qd)]
    lines += [_unknown("Output", k, moving) for k in (*accelerations, *modes)]
    lines += [_unknown("ContinuousStateDerivative", k, [speed]) for k, speed in zip(rates, qd, strict=True)]
    lines += [_unknown("ContinuousStateDerivative", k, moving) for k in accelerations]
    lines += [_unknown("InitialUnknown", k, [speed]) for k, speed in zip(rates, qd, strict=True)]
    lines += [_unknown("InitialUnknown", k, [*moving, *parameters]) for k in (*accelerations, *modes)]
    lines += [_unknown("EventIndicator", k, moving) for k in indicators]
    return [*lines, "  </ModelStructure>"]


def _unknown(kind: str, reference: int, dependencies: Sequence[int]) -> str:
    return f'    <{kind} valueReference="{reference}" dependencies="{" ".join(map(str, dependencies))}"/>'
