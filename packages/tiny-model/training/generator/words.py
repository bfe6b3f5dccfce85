"""Words, names and places. All lists were written for this project; the rest is made by rules.

Every token of the vocabulary must be copied in training, or the model cannot write it. Common words and names are
therefore used everywhere. Only made-up words are held out for tests.
"""

import random

COMMON = """
able above accept account across act actor add address adult advice after again age agree air album alert alive allow
almond alone amber anchor angle animal ankle answer ant apple apron arch arena arm army arrive arrow art ash ask
aunt autumn awake axe baby back badge bag bake ball bamboo banana band bank bar barn basket bath battery beach bean
bear beard beauty become bed bee begin belief bell belt bench berry best better bicycle big bird biscuit bitter
black blanket blend block blossom blue board boat body boil bold bone book boot border bottle bottom bowl box branch
brave bread break breath brick bridge bright bring broad broom brother brown brush bucket build bulb bundle bus busy
butter button cabin cable cake calm camel camera camp candle candy canoe canvas cap captain car card care carpet
carrot carry cart castle cat catch cave ceiling cellar cement center chain chair chalk change chapter charm cheap
check cheek cheese cherry chess chest chicken chief child chimney choice choose circle citizen city clay clean clear
clever cliff climb clock close cloth cloud clover coach coal coast coat coconut coffee coin cold collar color column
comb come comet common compass concert cook cool copper copy coral corn corner cotton count country course court cow
cradle crane crew cricket crisp crop cross crowd crown cruise crystal cup curl current curtain curve cushion cycle
dance danger daring dark dawn day deep deer desert desk dessert detail diamond dinner dish distance ditch dive
doctor dog dolphin door double dough dove dragon draw dream dress drift drill drink drive drop drum dry duck dust
duty eager eagle ear early earth easel east easy echo edge effort egg elbow elder elephant elk empty end energy
engine enjoy enough enter equal evening event exact exit eye fabric face factory fair falcon family famous farm fast
father feather fence fern ferry festival fever field fig final find finger fire first fish flag flame flat flavor
flight float floor flour flower flute fly fog fold follow forest fork fossil fox frame free fresh friend frog front
frost fruit full funnel future galaxy gallery game garage garden garlic gate gather gentle ghost giant gift ginger
give glad glass globe glove glow glue goat gold good goose grain grand grape grass gravel gray great green greet
ground group grow guard guest guide guitar habit hair half hall hammer hand handle happy harbor hard harvest hat
hawk hazel head healthy hear heart heat heavy hedge height hello helmet help hen herb hero hidden high hill hinge
history hold hole holiday hollow home honey hood hook hope horn horse hotel hour house huge human humble hunger
hunt hurry ice idea inch ink inn insect inside iron island ivory ivy jacket jam jar jelly jewel join joke journey
judge juice jump jungle junior just keen keep kettle key kind king kitchen kite kitten knee knight knot ladder lake
lamb lamp land lantern large last late laugh laundry leaf learn leather left lemon lend lentil letter level lift
light lily limit line lion lip list little lively lizard loaf lobby local lock lodge log lonely long look loose loud
love loyal luck lunch machine magic magnet maple marble march mark market marsh mask match meadow meal measure medal
meet melody melon mend menu metal middle milk mill mind mineral minute mirror mist mix model modern moment monkey
moon morning moss moth mother motor mountain mouse mouth move movie mud muffin museum mushroom music nail name narrow
nature near neat neck needle neighbor nephew nest net new nice niece night noble noise noon north nose note novel
number nurse nut oak ocean office oil old olive onion open orange orbit orchard order otter oven owl owner oyster
pack paddle page paint palace palm pan panda paper parade parcel park parrot party path patient pattern pause peace
peach pear pearl pebble pencil penguin people pepper perfect person photo phrase piano picnic picture piece pigeon
pillow pilot pine pink pipe pizza place plain plan plane planet plant plate play plum pocket poem point polite pond
pony pool poor popcorn porch port post pot potato pottery pound powder prince princess print prize proud public pull
pulse pump pumpkin pupil puppet puppy purple purse push puzzle quail quarry queen question quick quiet quilt rabbit
race radio rail rain raise ranch range rapid raven razor read ready recipe red reed reef refuge remedy remote repair
report rescue rest return ribbon rice rich ride right ring ripe rise river road roast robin robot rocket roof room
root rope rose rough round route royal rubber ruby rug rule run rural saddle safe sail salad salmon salt sand sauce
save scale scarf school science scissors scooter scout screen sea season seat secret seed senior shade shadow shape
share shark sharp sheep shelf shell shelter shield shine ship shirt shoe shop shore short shoulder shovel show
shrimp sign signal silent silk silver simple sing single sister skate sketch skill skin sky sleep slice slide slow
small smart smile smoke smooth snail snake snow soap soccer sock sofa soft soil solar solid song soon soup sour
south space spark speak special spend spice spider spinach spirit sponge spoon sport spring square squirrel stable
stage stair stamp stand star start station statue stay steam steel stem step stick stone stool stop store storm
story stove straight straw stream street string strong student studio sugar summer sun supper surface surprise swan
sweet swift swim swing sword symbol table tail tale tall tame tape target taste taxi tea teach team tell temple tent
test text thank theater thick thin thing thirsty thread throne thumb thunder ticket tide tidy tiger time tin tiny
tired title toast today tomato tool tooth top torch total touch tough tour towel tower town toy track trade train
travel tray treasure tree triangle trick trip trout truck true trumpet trunk trust tulip tunnel turkey turn turtle
twig twin uncle under uniform unit upper urban useful valley value van vanilla vase vast velvet verse vessel video
view village vine violet violin visit voice volcano wagon wait walk wall walnut warm wash wasp watch water wave way
weather week weight welcome west whale wheat wheel whisper whistle white whole wide wild willow wind window wine
wing winter wire wise wizard wolf wonder wood wool word work world worm wreath write yard year yellow yogurt young
zebra zero zigzag
""".split()

NAMES = """
Ada Adam Aisha Alan Alba Alice Amir Ana Andre Anna Anton Arthur Astrid Aya Bea Ben Bianca Bill Boris Bruno Carla Carol
Cem Chen Chloe Clara Cora Dan Daria David Dennis Diana Diego Dora Edgar Elena Elias Ella Emil Emma Erik Esther Ethan
Eva Fatima Felix Fiona Flora Frank Freya Gabriel Gina Grace Greta Gustav Hana Hannah Harry Helen Henry Hugo Ida Igor
Ines Ingrid Iris Isaac Ivan Jack Jana Jasmin Joan Jonas Jose Julia Kai Karim Karin Kate Kenji Kira Klaus Lara Lars
Laura Leila Lena Leo Lily Linda Lisa Lucas Lucy Luis Luna Maja Malik Marco Maria Mark Marta Mary Max Maya Mei Mia Mila
Milan Mira Mona Nadia Nils Nina Noah Nora Olga Oliver Omar Oscar Otto Pablo Paul Paula Pedro Peter Petra Pia Priya Rafael
Raj Ravi Rita Robert Rosa Ruby Ruth Sam Samir Sara Selma Simon Sofia Stella Susan Sven Tara Theo Tim Tina Tom Uma Vera
Victor Viola Walter Wanda Wendy Xenia Yara Yuki Zoe
""".split()

CITIES = """
Accra Amsterdam Ankara Athens Austin Bangkok Barcelona Basel Beijing Belgrade Bergen Berlin Bern Bilbao Bogota Bologna
Bonn Boston Bremen Brussels Bucharest Budapest Cairo Chicago Cologne Copenhagen Cork Dakar Dallas Delhi Denver Dresden
Dubai Dublin Florence Geneva Genoa Ghent Glasgow Graz Hamburg Hanoi Havana Helsinki Istanbul Jakarta Karachi Kyoto Lagos
Leeds Leipzig Lima Linz Lisbon London Lyon Madrid Malaga Manila Melbourne Miami Milan Minsk Montreal Moscow Mumbai
Munich Nairobi Naples Nice Osaka Oslo Ottawa Oxford Palermo Paris Perth Pisa Porto Prague Quito Rabat Reykjavik Riga
Rome Rotterdam Salzburg Seattle Seoul Seville Shanghai Singapore Sofia Stockholm Stuttgart Sydney Tallinn Tokyo Toronto
Tunis Turin Utrecht Valencia Vancouver Venice Verona Vienna Vilnius Warsaw York Zagreb Zurich
""".split()

COLORS = "red blue green yellow orange purple pink brown black white gray violet teal golden silver".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December".split()
)
JOBS = """teacher doctor farmer driver pilot baker painter nurse lawyer engineer cook student writer singer waiter
gardener carpenter plumber tailor librarian dentist""".split()
FOODS = "pizza pasta rice soup salad sushi curry cake bread cheese noodles pancakes tacos dumplings stew".split()

_ONSETS = "b c d f g h j k l m n p r s t v w z br cr dr fr gr tr bl cl fl gl pl sl st sp sk sn sm sw th sh ch qu".split()
_VOWELS = "a e i o u a e i o u a e i o u ai ea oo ou ee".split()
_CODAS = [""] * 6 + "n r l s t m d k p x ck nd st rt lt ng sh mp".split()
_ENDINGS = ["s", "ed", "ing", "er", "ly", "ness", "ful", "less", "able"]


def made_up_word(rng: random.Random) -> str:
    """Returns a word of one to three random syllables."""
    syllables = rng.choice([1, 2, 2, 2, 3])
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables))


def derived_word(rng: random.Random) -> str:
    """Returns a common word with an ending or as a compound. Not every result is an English word."""
    stem = rng.choice(COMMON)
    if rng.random() < 0.3:
        return stem + rng.choice(COMMON)
    if stem.endswith("e") and rng.random() < 0.7:
        return stem[:-1] + rng.choice(["es", "ed", "ing", "er"])
    return stem + rng.choice(_ENDINGS)
